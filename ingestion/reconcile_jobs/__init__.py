"""What the jobs share. It is imported first, so an older Python hears here that it is too old, in one sentence."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - pip refuses it too, and spark-submit asks no pip
    sys.stderr.write(
        "The Python that runs this job, {}, is {}.{}, and the jobs need 3.11, 3.12 or 3.13: set PYSPARK_PYTHON to one "
        "of these, or activate its virtual environment.\n".format(sys.executable, *sys.version_info[:2])
    )
    sys.exit(2)
