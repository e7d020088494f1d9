"""Generated input: the same in every run of the suite; `HYPOTHESIS_PROFILE=explore` looks further."""

import os

from hypothesis import settings

settings.register_profile("suite", deadline=None, derandomize=True, database=None)
settings.register_profile("explore", deadline=None, max_examples=3000, database=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))
