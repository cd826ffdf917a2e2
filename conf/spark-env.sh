#!/usr/bin/env bash
# Spark's own scripts source this file before they start the JVM, for spark-submit and for dbt's session.
# It adds the jars of conf/packages to the class path, and downloads each jar once, with the Ivy that Spark ships.
# A line of conf/packages is the coordinates of a jar, or a table format. conf/coordinates has the jars of a format for each Spark.
# spark.jars.packages also adds jars, but it resolves them at every start, and writes a page of messages each time.

reconcile_conf="${BASH_SOURCE[0]%/*}"
reconcile_jars="${RECONCILE_JARS:-${XDG_CACHE_HOME:-$HOME/.cache}/dbt-reconcile/jars}"

# The Spark that runs, as 4.1: a distribution of somebody else adds words to its version, as 4.0.2-amzn-0.
reconcile_spark="$(ls "$SPARK_HOME/jars" 2>/dev/null | sed -n 's/^spark-core_[0-9.]*-\([0-9]*\.[0-9]*\)\..*\.jar$/\1/p')"
# Print the coordinates that a word of conf/packages stands for.
reconcile_coordinates() {
  case "$1" in *:*) echo "$1" && return ;; esac
  if [ -z "$reconcile_spark" ]; then
    echo "dbt-reconcile: $SPARK_HOME/jars has no spark-core, so the version of Spark is not known: set SPARK_HOME to a Spark" >&2
    return 1
  fi
  awk -v spark="$reconcile_spark" -v format="$1" '$1 == spark && $2 == format { print $3; found = 1 } END { exit !found }' "$reconcile_conf/coordinates" && return
  echo "dbt-reconcile: $reconcile_conf/coordinates has no jars of $1 for Spark $reconcile_spark, but for$(awk -v format="$1" '$2 == format && !seen[$1]++ { printf "%s %s", comma, $1; comma = "," }' "$reconcile_conf/coordinates"): run one of these, or add lines for this one" >&2
  return 1
}
reconcile_packages=
for word in $(cat "$reconcile_conf/packages") ${RECONCILE_PACKAGES-}; do
  reconcile_packages+="$(reconcile_coordinates "$word")"$'\n' || exit 2
done

while IFS=: read -r group artifact version; do
  [ -n "$version" ] || continue
  jar="$reconcile_jars/$artifact-$version.jar"
  if [ ! -f "$jar" ]; then
    echo "dbt-reconcile: fetching $group:$artifact:$version into $reconcile_jars, once" >&2
    # Each process downloads a jar into its own directory, and moves it when it is complete. So another process never sees half a jar. Ivy cannot share its cache.
    "${JAVA_HOME:+$JAVA_HOME/bin/}java" -jar "$SPARK_HOME"/jars/ivy-2*.jar -error -m2compatible -notransitive -types jar \
      -cache "$reconcile_jars/.$$/.ivy" -dependency "$group" "$artifact" "$version" \
      -retrieve "$reconcile_jars/.$$/[artifact]-[revision].[ext]" >/dev/null &&
      mv -f "$reconcile_jars/.$$/$artifact-$version.jar" "$jar"
    rm -rf "$reconcile_jars/.$$"
    [ -f "$jar" ] || echo "dbt-reconcile: $group:$artifact:$version could not be fetched; put the jar there by hand and run again" >&2
  fi
  SPARK_DIST_CLASSPATH="${SPARK_DIST_CLASSPATH:+$SPARK_DIST_CLASSPATH:}$jar"
# RECONCILE_PACKAGES: additional jars, for example a JDBC driver.
done <<<"$reconcile_packages"
export SPARK_DIST_CLASSPATH

# conf/shared reads locations and credentials from the environment. Without them Spark would fail with a page of Java errors.
for name in $(sed -n 's/^[^#]*${env\.\(RECONCILE_[A-Z_]*\)}.*/\1/p' "$reconcile_conf/spark-defaults.conf" 2>/dev/null); do
  [ -n "${!name}" ] || { echo "dbt-reconcile: $name is not set, which $reconcile_conf takes from the environment; \`metastore.py --help\` says what it is" >&2; exit 2; }
done

# Derby, the embedded metastore, admits one process. It reports a second process only after minutes, with pages of Java errors. So this script checks the lock first.
# It waits for a moment, since dbt's JVM ends shortly after dbt. If the kernel does not show locks, or another machine holds the lock, only Derby reports the conflict.
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

# On one machine, listen only on loopback. Spark then does not guess the machine's address, and does not warn about it.
export SPARK_LOCAL_IP="${SPARK_LOCAL_IP:-127.0.0.1}"

# spark-submit hides the terminal from the Python process that it runs. Jobs that show progress read this variable.
if [ -t 2 ]; then export RECONCILE_TERMINAL=1; else unset RECONCILE_TERMINAL; fi

# The first line of the JVM is a warning about the vector module that Spark requests. No setting suppresses it, so this process removes it. All later output
# passes byte by byte, since a progress line has no line end. Ctrl-C reaches this process too. It must still pass on the job's message about Ctrl-C.
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
