"""Which properties of a connection anybody may set: drivers have some that load a class, or write a file."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from reconcile_jobs.jdbc.database import Database
from reconcile_jobs.process.errors import UsageError

__all__ = ["check_properties"]

# Of each driver, in lower case, those that load no class, read no file but keys, write none, and change no value that
# is read: from the drivers' own documentation, of the versions that this package names.
_HARMLESS = {
    "PostgreSQL": """
        ssl sslmode sslrootcert sslcert sslkey sslpassword sslnegotiation sslresponsetimeout channelbinding
        requireauth gssencmode gssresponsetimeout krbservername jaaslogin usespnego applicationname
        connecttimeout sockettimeout logintimeout canceltimeout tcpkeepalive tcpnodelay targetservertype
        hostrecheckseconds loadbalancehosts currentschema preparethreshold receivebuffersize sendbuffersize
        logservererrordetail
    """,
    # Not oracle.net.tns_admin: the driver takes any property from a file in that directory.
    "Oracle": """
        oracle.net.wallet_location wallet_location oracle.net.wallet_password
        oracle.net.connect_timeout connect_timeout oracle.net.read_timeout oracle.jdbc.readtimeout
        oracle.net.ssl_server_dn_match ssl_server_dn_match oracle.net.ssl_server_cert_dn ssl_server_cert_dn
        oracle.net.ssl_version ssl_version oracle.net.ssl_cipher_suites oracle.net.ssl_certificate_alias
        oracle.net.encryption_client oracle.net.encryption_types_client oracle.net.crypto_checksum_client
        oracle.net.crypto_checksum_types_client oracle.net.authentication_services oracle.net.kerberos5_cc_name
        oracle.net.keepalive oracle.net.networkcompression oracle.net.disableoob
        oracle.net.outbound_connect_timeout retry_count retry_delay transport_connect_timeout https_proxy
        https_proxy_port javax.net.ssl.keystore javax.net.ssl.keystorepassword javax.net.ssl.keystoretype
        javax.net.ssl.truststore javax.net.ssl.truststorepassword javax.net.ssl.truststoretype v$session.program
        v$session.osuser v$session.terminal v$session.machine v$session.process
    """,
    "MySQL": """
        sslmode usessl serversslcert disablesslhostnameverification trustservercertificate keystore
        keystorepassword keystoretype keypassword truststore truststorepassword truststoretype
        enabledsslprotocolsuites enabledsslciphersuites allowpublickeyretrieval serverrsapublickeyfile
        cachingrsapublickeyfile restrictedauth connecttimeout sockettimeout tcpkeepalive tcpkeepidle
        tcpkeepcount tcpkeepinterval tcpabortiveclose localsocket usecompression transactionreplay
        retriesalldown
    """,
    "SQL Server": """
        database databasename server servername instancename port portnumber encrypt trustservercertificate
        truststore truststorepassword truststoretype hostnameincertificate servercertificate clientcertificate
        clientkey clientkeypassword sslprotocol fips logintimeout sockettimeout querytimeout canceltimeout
        locktimeout connectretrycount connectretryinterval applicationname applicationintent multisubnetfailover
        failoverpartner transparentnetworkipresolution ipaddresspreference packetsize workstationid
        authentication authenticationscheme integratedsecurity domain realm serverspn accesstoken usentlmv2
        msiclientid aadsecureprincipalid aadsecureprincipalsecret
    """,
}

# A property in a URL comes after ?, & or ;, with a value or without one.
_IN_URL = re.compile(r"[?&;]\s*([^=?&;]*[^=?&;\s])")
# Oracle's driver takes all properties from a file or a server that stands in the place of the database.
_ELSEWHERE = re.compile(r"@\s*(config-\w+)", re.IGNORECASE)
# In parentheses: what MariaDB's driver may have of a host, and the program that Oracle's would start as its server.
_IN_PARENTHESES = {
    "MySQL": re.compile(r"\(\s*(?!(?:host|port|type)\s*=)([^=()]*[^=()\s])\s*=", re.IGNORECASE),
    "Oracle": re.compile(r"\(\s*(program|argv0|args|envs)\s*=", re.IGNORECASE),
}


def check_properties(database: Database, url: str, names: Iterable[str], allowed: Collection[str]) -> None:
    """Raise UsageError for a property of the connection that is neither known to be harmless nor allowed by its name.

    Drivers have some that load a class, read or write a file, or run a statement, whoever sets them.
    """
    harmless = {"user", "password", *_HARMLESS[database.name].split(), *(name.lower() for name in allowed)}
    of_url = [*_ELSEWHERE.findall(url), *_IN_URL.findall(url)]
    if of_address := _IN_PARENTHESES.get(database.name):
        of_url += of_address.findall(url)
    for place, found in (("--url", of_url), ("the file of --properties", names)):
        if other := next((name for name in found if name.lower() not in harmless), None):
            raise UsageError(
                f"{place} has the property {other}, which is not among the properties of {database.name}'s driver "
                "that are known to be harmless: some load classes, read and write files, or run statements. Remove it; "
                f"or, if you know what it does, add --allow-property {other}."
            )
