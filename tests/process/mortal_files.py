"""A file system in which a process can die: `mortal:/a/b` is the file /a/b, until so many things were written.

What is written in Spark's JVM goes through it one by one: a directory made, a file begun, a file ended, a rename, a
delete. Once a run has had its lives, that write fails and so does every later one: a clean-up or a thread that goes on
writes no more than that of a dead process. A file that is not ended has half of its bytes. Jobs and statements come to
the same count, so that what they do in the metastore is a place to die at too.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from reconcile_jobs.process import failpoints

PACKAGE = "reconcile_tests"
# For Spark's configuration; the class comes into the session later. Delta writes its log through the second.
SETTINGS = {
    "spark.hadoop.fs.mortal.impl": f"{PACKAGE}.MortalFiles",
    "spark.hadoop.fs.AbstractFileSystem.mortal.impl": f"{PACKAGE}.MortalContext",
}
_WRITES = re.compile(r"\s*(?!select|with|show|describe|set|from|values|explain|cache|uncache)\w", re.IGNORECASE)

# Janino, which Spark has for its generated code, compiles it.
_JAVA = """
package reconcile_tests;

import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.io.RandomAccessFile;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.FsServerDefaults;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

public class MortalFiles extends RawLocalFileSystem {
    static final URI ROOT = URI.create("mortal:///");
    private static int lives = Integer.MAX_VALUE;
    private static boolean dead = false;
    private static List reached = new ArrayList();

    public static synchronized void live(int writes) {
        lives = writes;
        dead = false;
        reached = new ArrayList();
    }

    public static synchronized String[] reached() {
        return (String[]) reached.toArray(new String[reached.size()]);
    }

    public static synchronized boolean isDead() {
        return dead;
    }

    public static synchronized void reach(String place) throws IOException {
        if (reached.size() >= lives) {
            dead = true;
            throw new IOException("killed before: " + place);
        }
        reached.add(place);
    }

    public URI getUri() {
        return ROOT;
    }

    public String getScheme() {
        return "mortal";
    }

    public boolean rename(Path from, Path to) throws IOException {
        reach("rename to " + to);
        return super.rename(from, to);
    }

    public boolean delete(Path path, boolean recursive) throws IOException {
        if (pathToFile(path).exists()) {
            reach("delete " + path);
        }
        return super.delete(path, recursive);
    }

    public boolean truncate(Path path, long length) throws IOException {
        reach("truncate " + path);
        return super.truncate(path, length);
    }

    protected boolean mkOneDirWithMode(Path path, File file, FsPermission permission) throws IOException {
        if (!file.exists()) {
            reach("directory " + path);
        }
        return super.mkOneDirWithMode(path, file, permission);
    }

    protected OutputStream createOutputStream(Path path, boolean append) throws IOException {
        reach("begin " + path);
        return new MortalFile(pathToFile(path), path, super.createOutputStream(path, append));
    }

    protected OutputStream createOutputStreamWithMode(Path path, boolean append, FsPermission permission)
            throws IOException {
        reach("begin " + path);
        return new MortalFile(pathToFile(path), path, super.createOutputStreamWithMode(path, append, permission));
    }

    static class MortalFile extends OutputStream {
        private final File file;
        private final Path path;
        private final OutputStream out;
        private boolean closed = false;

        MortalFile(File file, Path path, OutputStream out) {
            this.file = file;
            this.path = path;
            this.out = out;
        }

        public void write(int one) throws IOException {
            out.write(one);
        }

        public void write(byte[] some, int from, int count) throws IOException {
            out.write(some, from, count);
        }

        public void flush() throws IOException {
            out.flush();
        }

        public void close() throws IOException {
            if (closed) {
                return;
            }
            closed = true;
            out.close();
            try {
                reach("end " + path);
            } catch (IOException dead) {
                RandomAccessFile half = new RandomAccessFile(file, "rw");
                half.setLength(half.length() / 2);
                half.close();
                throw dead;
            }
        }
    }
}
"""
_CONTEXT = """
package reconcile_tests;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.DelegateToFileSystem;

public class MortalContext extends DelegateToFileSystem {
    public MortalContext(URI uri, Configuration configuration) throws IOException, URISyntaxException {
        super(uri, new MortalFiles(), configuration, "mortal", false);
    }

    public int getUriDefaultPort() {
        return -1;
    }

    public boolean isValidName(String name) {
        return true;
    }
}
"""


class Mortal:
    """The file system in a session, and the lives of what is run in it."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        with tempfile.TemporaryDirectory() as made:
            for source in (_JAVA, _CONTEXT):
                compiler = jvm.org.codehaus.janino.SimpleCompiler()
                compiler.setParentClassLoader(loader)
                compiler.cook(source)
                for name, code in dict(compiler.getBytecodes()).items():
                    file = Path(made, *name.split(".")).with_suffix(".class")
                    file.parent.mkdir(exist_ok=True)
                    file.write_bytes(bytes(code))
                if source is _JAVA:
                    loader.addURL(jvm.java.net.URL(f"file:{made}/"))
            self._files: Any = getattr(jvm, PACKAGE).MortalFiles
            loader.loadClass(f"{PACKAGE}.MortalFiles$MortalFile")
            loader.loadClass(f"{PACKAGE}.MortalContext")
        self.spark = spark
        # The places of the last run, in their order.
        self.places: list[str] = []

    def dies(self, lives: int, act: Callable[[], Any]) -> bool:
        """Let a run write so often, and return whether it died of that."""
        self._files.live(lives)
        try:
            with self._counted():
                act()
        except Exception:
            if not self._files.isDead():
                raise
        finally:
            self.places = list(self._files.reached())
            died = bool(self._files.isDead())
            self._files.live(2**31 - 1)
        return died

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """Let failpoints and statements that write be places too."""
        sql = SparkSession.sql

        def counted(session: SparkSession, text: str, *given: Any, **named: Any) -> Any:
            if not _WRITES.match(text):
                return sql(session, text, *given, **named)
            what = " ".join(text.split()[:3]).lower()
            self._files.reach(f"before {what}")
            done = sql(session, text, *given, **named)
            self._files.reach(f"after {what}")
            return done

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(failpoints, "reach", self._files.reach)
            patched.setattr(SparkSession, "sql", counted)
            yield
