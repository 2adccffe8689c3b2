"""The text about the largest value. About values outside the given range nothing is known."""

import pytest

from tfmemtop.experiments.fit.largest import LargestSearch, Prediction, Wanted
from tfmemtop.experiments.fit.largest_text import conclusion

REPLAYED = (8, 13)


@pytest.mark.parametrize(
    ("predicted", "told"),
    [
        ((40, 44, 46), "40 passes, the largest that is likely to pass is ~44, and values above ~46 should fail."),
        ((64, 64, 64), "all values pass up to 64, the end of the range."),
        ((40, 64, 64), "40 passes and all values may pass up to 64, the end of the range."),
        ((40, 60, 64), "40 passes and the largest that is likely to pass is ~60."),
        ((3, 44, 46), "it is not sure that any value passes, the largest that is likely to pass is ~44, and values"),
        ((3, 3, 3), "no value of the range passes."),
        ((3, 3, 7), "it is not sure that any value passes, 4 is likely to fail, and values above ~7 should fail."),
    ],
)
def test_a_prediction_keeps_to_the_range(predicted: tuple[int, int, int], told: str) -> None:
    search = LargestSearch(Wanted("batch", 4, 64), 6)
    search.expect(Prediction(*predicted, REPLAYED))
    (_, said) = conclusion(search, None, None)
    assert said.startswith(f"The replay of the tries with batch=8 and batch=13 predicted: {told}")
