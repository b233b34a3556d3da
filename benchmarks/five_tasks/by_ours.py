"""The five tasks by rankeval-spark."""

from rankeval_spark import evaluate


def means(log, held_out, _):
    return evaluate(log, held_out, measures=["nDCG@10", "AP@10", "R@10"]).leaderboard()


def difference(log, held_out, _):
    return evaluate(log, held_out, measures=["nDCG@10"]).compare("als", "popular")


def segments(log, held_out, users):
    return evaluate(log, held_out, measures=["nDCG@10"], segments=users, slices=["age_band"]).metrics


def own_measure(log, held_out, _):
    def best_on_top(gains, judged):
        """Whether one of the first three items has the highest gain; undefined without such an item."""
        return float(max(gains[:3], default=0) >= 2) if max(judged) >= 2 else None

    return evaluate(log, held_out, measures=[best_on_top]).leaderboard()


def page(log, held_out, users):
    measures = ["nDCG@10", "AP@10", "R@10"]
    result = evaluate(
        log, held_out, measures=measures, comparisons={"pairs": "all"}, segments=users, slices=["age_band"]
    )
    result.plot.forest().save("forest.html")
    return result.leaderboard().to_latex()
