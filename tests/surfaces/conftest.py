"""Generated input is the same in every run here, too."""

import tests.unit.conftest  # noqa: F401 - it loads the profile
