#!/usr/bin/env bash
# Spark's own scripts source this file before they start the JVM, for spark-submit and for dbt's session alike.
# It puts the jars of conf/packages on the class path. spark.jars.packages would do the same, but resolves at every
# start and writes a page of chatter each time; here each jar is fetched once, with the Ivy that Spark ships.

reconcile_conf="${BASH_SOURCE[0]%/*}"
reconcile_jars="${RECONCILE_JARS:-${XDG_CACHE_HOME:-$HOME/.cache}/dbt-reconcile/jars}"

while IFS=: read -r group artifact version; do
  [ -n "$version" ] || continue
  jar="$reconcile_jars/$artifact-$version.jar"
  if [ ! -f "$jar" ]; then
    echo "dbt-reconcile: fetching $group:$artifact:$version into $reconcile_jars, once" >&2
    # In a directory of this process, until it is whole: of two that start at once one must not see half a jar, and Ivy does not share its cache.
    "${JAVA_HOME:+$JAVA_HOME/bin/}java" -jar "$SPARK_HOME"/jars/ivy-2*.jar -error -m2compatible -notransitive -types jar \
      -cache "$reconcile_jars/.$$/.ivy" -dependency "$group" "$artifact" "$version" \
      -retrieve "$reconcile_jars/.$$/[artifact]-[revision].[ext]" >/dev/null &&
      mv -f "$reconcile_jars/.$$/$artifact-$version.jar" "$jar"
    rm -rf "$reconcile_jars/.$$"
    [ -f "$jar" ] || echo "dbt-reconcile: $group:$artifact:$version could not be fetched; put the jar there by hand and run again" >&2
  fi
  SPARK_DIST_CLASSPATH="${SPARK_DIST_CLASSPATH:+$SPARK_DIST_CLASSPATH:}$jar"
# RECONCILE_PACKAGES: more of them, as a JDBC driver.
done < <(cat "$reconcile_conf/packages"; printf "%s\n" ${RECONCILE_PACKAGES-})
export SPARK_DIST_CLASSPATH

# conf/shared takes its places from the environment, and without them Spark would fail with a page of Java.
for name in $(sed -n 's/^[^#]*${env\.\(RECONCILE_[A-Z_]*\)}.*/\1/p' "$reconcile_conf/spark-defaults.conf" 2>/dev/null); do
  [ -n "${!name}" ] || { echo "dbt-reconcile: $name is not set, which $reconcile_conf takes from the environment; \`metastore.py --help\` says what it is" >&2; exit 2; }
done

# Derby, the embedded metastore, admits one process, and says so in pages of Java, after minutes. dbt's JVM ends a moment after dbt, so the one before is waited for. Where the
# kernel does not show locks, or another machine has it, Derby says it itself.
reconcile_derby="$(sed -n 's/^spark.driver.*-Dderby.system.home=\([^ ]*\).*/\1/p' "$reconcile_conf/spark-defaults.conf" 2>/dev/null)/metastore/dbex.lck"
case "${PYSPARK_SUBMIT_ARGS-} ${SPARK_SUBMIT_OPTS-}" in *derby.system.home*) reconcile_derby= ;; esac
reconcile_holder() {
  local file
  [ -f "$reconcile_derby" ] || return 0
  file="$(printf '%02x:%02x:%s' $(stat -c '%Hd %Ld %i' "$reconcile_derby" 2>/dev/null) 2>/dev/null)"
  awk -v file="$file" '$2 == "POSIX" && $6 == file { print $5; exit }' /proc/locks 2>/dev/null
}
tries=$((${RECONCILE_PATIENCE:-5} * 2))
while reconcile_pid="$(reconcile_holder)" && [ -n "$reconcile_pid" ] && ((tries-- > 0)); do sleep 0.5; done
if [ -n "$reconcile_pid" ]; then
  echo "dbt-reconcile: the metastore in ${reconcile_derby%/metastore/*} is held by process $reconcile_pid, and the embedded one admits one process at a time: wait until that has ended; or let SPARK_CONF_DIR point at conf/shared, where append.py --every and dbt run work at once" >&2
  exit 4
fi

# One machine: listen on loopback only, which also spares Spark's guess at the machine's address and its warning.
export SPARK_LOCAL_IP="${SPARK_LOCAL_IP:-127.0.0.1}"

# spark-submit hides the terminal from the Python it runs; jobs that show progress ask this variable.
if [ -t 2 ]; then export RECONCILE_TERMINAL=1; else unset RECONCILE_TERMINAL; fi

# The JVM's first line announces the vector module that Spark asks for, and has no switch against it. What comes behind it
# passes byte by byte: a progress line has no end. Ctrl-C reaches this process too, and what a job says of it must still pass.
exec 2> >(
  trap '' INT TERM
  exec >&2
  if IFS= read -r line; then
    [ "$line" = 'WARNING: Using incubator modules: jdk.incubator.vector' ] || printf '%s\n' "$line"
  else
    printf '%s' "$line"
  fi
  exec cat
)
