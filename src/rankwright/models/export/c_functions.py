"""C functions that compute the parts of a score, each with the tables that it reads.

Sums are made in the order of the kernels in ``kernels/scorers``, in double precision.
"""

from __future__ import annotations

from string import Template

import numpy as np

from rankwright.models.export.c_tables import format_table, format_value
from rankwright.models.export.float32_thresholds import round_down_to_float32
from rankwright.scorers import KernelSum, Network, Stumps
from rankwright.scorers.lightgbm_text import Forest
from rankwright.scorers.lightgbm_trees import Tree

COMPLETE = Template("""\
/* The value of a feature that must not be missing: a missing one counts as 0. */
static double ${name}_complete(float value)
{
    return value == value ? value : 0.0;
}
""")

_TREES = Template("""\
/* A split sends values up to its threshold to the left$category_comment.
 * A child from 0 up is a split; any other is ~leaf. */
struct ${name}_split {
    float threshold;
    unsigned int feature : 30, missing_left : 1, by_category : 1;
    int left, right;
};

$tables

static void ${name}_add_trees(const float *x, size_t n, double *total)
{
    size_t tree, i;
    for (tree = 0; tree < $n_trees; tree++) {
        for (i = 0; i < n; i++) {
            const float *row = x + i * $width;
            int at = ${name}_roots[tree];
            while (at >= 0) {
                const struct ${name}_split *split = &${name}_splits[at];
                const float value = row[split->feature];
                const int goes_left = $goes_left;
                at = goes_left ? split->left : split->right;
            }
            total[i] += ${name}_leaves[~at];
        }
    }
}
""")
_BY_THRESHOLD = "value <= split->threshold || (value != value && split->missing_left)"

_CATEGORIES = Template("""\
/* Whether a category is in a set, whose words have a bit for each category. */
static int ${name}_is_in_set(float category, int set)
{
    const int first = ${name}_first_words[set], end = ${name}_first_words[set + 1];
    long number;
    if (!(category >= 0.0f && category < 32.0f * (float)(end - first)))
        return 0;
    number = (long)category;
    return (int)(${name}_words[first + number / 32] >> (number % 32) & 1u);
}
""")

_STUMPS = Template("""\
$tables

/* A sum of stumps: for each feature a function that jumps at its thresholds; its last value is for a missing one. */
static double ${name}_stumps$k(const float *x)
{
    double total = 0.0;
    int f, t;
    for (f = 0; f < $n; f++) {
        const int low = ${name}_starts$k[f], high = ${name}_starts$k[f + 1];
        const float *thresholds = ${name}_thresholds$k;
        const double *steps = ${name}_steps$k + low + 2 * f;
        const float value = $value;
        if (high - low <= 4) { /* few jumps are added one by one */
            for (t = low; t < high; t++)
                total += value > thresholds[t] ? steps[t - low + 1] - steps[t - low] : 0.0;
            total += value != value ? steps[high - low + 1] : 0.0;
        } else {
            int at = low, left = high - low; /* count the thresholds below the value by binary search */
            while (left > 0) {
                const int half = left / 2, is_above = value > thresholds[at + half];
                at = is_above ? at + half + 1 : at;
                left = is_above ? left - half - 1 : half;
            }
            total += steps[value == value ? at - low : high - low + 1];
        }
    }
    return total;
}
""")

_LINEAR = Template("""\
$tables

static double ${name}_linear(const float *x)
{
    double sums[4] = {0.0, 0.0, 0.0, 0.0};
    int j;
    for (j = 0; j < $width; j++)
        sums[j < $whole ? j % 4 : 0] += ${name}_complete(x[j]) * ${name}_coef[j];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}
""")

_NETWORK = Template("""\
$tables

static double ${name}_network$k(const float *x)
{
    double a[$widest], b[$widest], *inputs = a, *outputs = b;
    const float *weights = ${name}_weights$k;
    int layer, i, j;
    for (i = 0; i < $width; i++)
        inputs[i] = (${name}_complete(x[i]) - ${name}_network_mean$k[i]) * ${name}_network_factor$k[i];
    for (layer = 0; layer < $n_layers; layer++) {
        const int n_inputs = ${name}_widths$k[layer], n_outputs = ${name}_widths$k[layer + 1];
        const float *bias = weights + n_inputs * n_outputs;
        double *next = inputs;
        for (j = 0; j < n_outputs; j++)
            outputs[j] = bias[j];
        for (i = 0; i < n_inputs; i++)
            for (j = 0; j < n_outputs; j++)
                outputs[j] += inputs[i] * weights[i * n_outputs + j];
        for (j = 0; j < n_outputs && layer < $n_layers - 1; j++)
            outputs[j] = ${name}_$activation(outputs[j]);
        weights = bias + n_outputs;
        inputs = outputs;
        outputs = next;
    }
    return inputs[0];
}
""")
_SIGMOID = "(v >= 0.0 ? 1.0 : exp(v)) / (1.0 + exp(-fabs(v)))"
_ACTIVATIONS = {
    "relu": "v > 0.0 ? v : 0.0",
    "tanh": "tanh(v)",
    "sigmoid": _SIGMOID,
    "silu": f"v * ({_SIGMOID})",
    "gelu": "v * (0.5 * (1.0 + erf(v * 0.7071067811865476)))",
}

_KERNEL_SUM = Template("""\
$tables

static double ${name}_kernel_sum$k(const float *x)
{
    const double *landmark = ${name}_landmarks$k;
    double scaled[$width], sums[4] = {0.0, 0.0, 0.0, 0.0};
    int i, j;
    for (j = 0; j < $width; j++)
        scaled[j] = (${name}_complete(x[j]) - ${name}_kernel_mean$k[j]) * ${name}_kernel_factor$k[j];
    for (i = 0; i < $n; i++, landmark += $width) {
        double value = 0.0;
        for (j = 0; j < $width; j++)
            value += $term;
        $kernel
        sums[i < $whole ? i % 4 : 0] += ${name}_dual$k[i] * value;
    }
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + $intercept;
}
""")
_TERMS = {
    "rbf": "(scaled[j] - landmark[j]) * (scaled[j] - landmark[j])",
    "laplacian": "fabs(scaled[j] - landmark[j])",
}


def write_trees(trees: list[Tree], name: str, n_features: int) -> str:
    """Return a function that adds the values of all trees, in their order, to the scores of some rows."""
    nodes = Forest.from_trees(trees, n_features).nodes
    first, leaf = nodes.first_node[:-1], nodes.first_leaf[:-1]
    tree = np.repeat(np.arange(len(trees)), np.diff(nodes.first_node))
    children = [np.where(c >= 0, c + first[tree], c - leaf[tree]).tolist() for c in (nodes.left, nodes.right)]
    by_category = np.isnan(nodes.threshold)
    threshold = np.where(by_category, np.cumsum(by_category) - 1, round_down_to_float32(nodes.threshold))
    flags = [nodes.feature.tolist(), nodes.missing_left.tolist(), by_category.tolist()]
    splits = list(zip(threshold.astype(np.float32), *flags, *children, strict=True))
    roots = np.where(np.diff(nodes.first_node) > 0, first, ~leaf)
    tables = [
        format_table(f"static const struct {name}_split", f"{name}_splits", splits or [(np.float32(0), 0, 0, 0, 0, 0)]),
        format_table("static const int", f"{name}_roots", roots),
        format_table("static const double", f"{name}_leaves", nodes.value),
    ]
    if by_category.any():
        starts = np.append(nodes.first_word[:-1][by_category], nodes.first_word[-1])
        tables += [
            format_table("static const int", f"{name}_first_words", starts),
            format_table("static const unsigned int", f"{name}_words", nodes.words),
            _CATEGORIES.substitute(name=name).rstrip(),
        ]
    in_set = f"split->by_category ? {name}_is_in_set(value, (int)split->threshold) : {_BY_THRESHOLD}"
    return _TREES.substitute(
        name=name,
        tables="\n\n".join(tables),
        n_trees=len(trees),
        width=n_features,
        goes_left=in_set if by_category.any() else _BY_THRESHOLD,
        category_comment=", or the categories in a set whose number is the threshold" if by_category.any() else "",
    )


def write_stumps(stumps: Stumps, name: str, k: int) -> str:
    """Return a function that computes the k-th sum of stumps."""
    features, starts, thresholds, values = stumps.steps
    feature = f"x[{name}_features{k}[f]]"
    tables = [
        format_table("static const int", f"{name}_features{k}", features),
        format_table("static const int", f"{name}_starts{k}", starts),
        format_table("static const float", f"{name}_thresholds{k}", thresholds),
        format_table("static const double", f"{name}_steps{k}", values),
    ]
    value = feature if stumps.allow_nan else f"(float){name}_complete({feature})"
    return _STUMPS.substitute(name=name, k=k, n=len(features), value=value, tables="\n\n".join(tables))


def write_linear(coef: np.ndarray, name: str) -> str:
    """Return a function that computes the weighted sum of the features."""
    table = format_table("static const double", f"{name}_coef", coef)
    return _LINEAR.substitute(name=name, tables=table, width=len(coef), whole=len(coef) - len(coef) % 4)


def write_activation(activation: str, name: str) -> str:
    """Return a function that computes an activation."""
    return f"static double {name}_{activation}(double v)\n{{\n    return {_ACTIVATIONS[activation]};\n}}\n"


def write_network(network: Network, name: str, k: int) -> str:
    """Return a function that computes the output of the k-th network."""
    layers = [x.ravel() for pair in zip(network.weights, network.biases, strict=True) for x in pair]
    widths = [len(network.mean), *map(len, network.biases)]
    tables = [
        format_table("static const double", f"{name}_network_mean{k}", network.mean),
        format_table("static const double", f"{name}_network_factor{k}", network.factor),
        format_table("static const int", f"{name}_widths{k}", widths),
        format_table("static const float", f"{name}_weights{k}", np.concatenate(layers)),
    ]
    own = {"n_layers": len(network.weights), "widest": max(widths), "activation": network.activation}
    return _NETWORK.substitute(name=name, k=k, width=widths[0], tables="\n\n".join(tables), **own)


def write_kernel_sum(scorer: KernelSum, name: str, k: int) -> str:
    """Return a function that computes the k-th kernel sum."""
    kernel, n, width = scorer.kernel, len(scorer), len(scorer.mean)
    base = f"{format_value(kernel.gamma)} * value + {format_value(kernel.coef0)}"
    codes = {
        "poly": f"{{\n            const double base = {base};\n            int power;\n            value = 1.0;\n"
        f"            for (power = 0; power < {kernel.degree}; power++)\n                value *= base;\n        }}",
        "sigmoid": f"value = tanh({base});",
        "linear": "",
    }
    tables = [
        format_table("static const double", f"{name}_kernel_mean{k}", scorer.mean),
        format_table("static const double", f"{name}_kernel_factor{k}", scorer.factor),
        format_table("static const double", f"{name}_landmarks{k}", scorer.landmarks.ravel()),
        format_table("static const double", f"{name}_dual{k}", scorer.dual),
    ]
    return _KERNEL_SUM.substitute(
        name=name,
        k=k,
        tables="\n\n".join(tables),
        n=n,
        width=width,
        whole=n - n % 4,
        term=_TERMS.get(kernel.name, "scaled[j] * landmark[j]"),
        kernel=codes.get(kernel.name, f"value = exp({format_value(-kernel.gamma)} * value);"),
        intercept=format_value(scorer.intercept),
    )
