"""C: one file that any C99 compiler takes, without dependencies; every kind of scorer, and sums of them."""

from __future__ import annotations

import re
from string import Template
from typing import ClassVar

from rankwright.basics.errors import InputError, quote
from rankwright.basics.version import __version__
from rankwright.models.export import c_functions as functions
from rankwright.models.export.c_tables import format_table, format_value
from rankwright.models.export.target import ExportedFiles, ExportRequest, Target
from rankwright.scorers import Stumps
from rankwright.scorers.score_parts import ScoreParts

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)  # C reserves names that begin with an underscore
_MAX_NAME = 40  # characters: compilers need to tell apart only the first 63, and functions add some

_HEAD = Template("""\
/* The ranking model $name, exported by Rankwright $version.
 *
 * A document is an array of ${name}_n_features floats in the order of ${name}_feature_names; NAN is a missing value.
 * A larger score is ranked earlier. Scores are computed in double precision; threads may share the model.
 *
 * Compile it with: cc -std=c99 -O2 -c FILE.c, and link with -lm. Do not use -ffast-math: it ignores NAN.
 * To use the model in another file, copy the includes and declarations down to "end of declarations" there. */

#include <math.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

extern const int ${name}_n_features;
extern const char *const ${name}_feature_names[$width];
$categories
/* Return the score of one document. */
double ${name}_score(const float *x);

/* Compute the scores of n_rows documents that lie one after another. */
void ${name}_score_batch(const float *x, size_t n_rows, double *scores);

#ifdef __cplusplus
}
#endif

/* end of declarations */
""")

_SCORE = Template("""\
static void ${name}_score_block(const float *x, size_t n, double *scores)
{
    size_t i;
    for (i = 0; i < n; i++)
        scores[i] = 0.0;
$sums}

double ${name}_score(const float *x)
{
    double score;
    ${name}_score_block(x, 1, &score);
    return score;
}

void ${name}_score_batch(const float *x, size_t n_rows, double *scores)
{
    const size_t block = 64; /* documents at a time, which stay in the cache while one tree after another reads them */
    size_t start;
    for (start = 0; start < n_rows; start += block) {
        const size_t n = n_rows - start < block ? n_rows - start : block;
        ${name}_score_block(x + start * $width, n, scores + start);
    }
}
""")


class CTarget(Target):
    """A C file with a function for one document and one for many, in double precision."""

    name: ClassVar[str] = "c"
    title: ClassVar[str] = "C"
    takes: ClassVar[frozenset[str]] = frozenset({"linear", "stumps", "trees", "categories", "network", "kernel sum"})
    mixes: ClassVar[bool] = True
    precision: ClassVar[str] = "float64"

    def build(self, request: ExportRequest) -> ExportedFiles:
        """Return the C file; raise InputError if the name of the model cannot begin the names of functions."""
        name = request.model_name
        if not _IDENTIFIER.fullmatch(name) or len(name) > _MAX_NAME:
            raise InputError(
                f"the name {quote(name)} of the model begins the names of C functions; expected letters, digits and "
                f"underscores, a letter first, at most {_MAX_NAME}: give it another with model_name= (--name)"
            )
        blocks = [_write_head(request), *_write_names(request), *_write_functions(request.parts, name)]
        notes = [f"compile it with: cc -std=c99 -O2 -c {request.file_name}, and link with -lm; call {name}_score(x)"]
        if request.categories is not None:
            notes.append(f"a feature with categories takes the place of its value in {name}_categories..., from 0")
        return ExportedFiles("\n".join([*blocks, _write_score(request.parts, name)]).encode(), notes=notes)


def _write_head(request: ExportRequest) -> str:
    """Return the comment at the top of the file, and the declarations."""
    name = request.model_name
    lines = [
        f"\n/* The values of feature {i}: it holds the place of a value in this list, from 0. */\n"
        f"extern const char *const {name}_categories{i}[{len(values)}];\n"
        for i, values in enumerate(request.categories or ())
        if values is not None
    ]
    width = request.parts.n_features
    return _HEAD.substitute(name=name, version=__version__, width=width, categories="".join(lines))


def _write_names(request: ExportRequest) -> list[str]:
    """Return the definitions of the number and names of features, and of the values of categories."""
    name, kind = request.model_name, "const char *const"
    tables = [format_table(kind, f"{name}_feature_names", request.names)]
    for i, values in enumerate(request.categories or ()):
        tables += [] if values is None else [format_table(kind, f"{name}_categories{i}", values)]
    return [f"const int {name}_n_features = {request.parts.n_features};\n", *(f"{table}\n" for table in tables)]


def _write_functions(parts: ScoreParts, name: str) -> list[str]:
    """Return the functions that compute the parts of the score."""
    found = []
    needs_complete = not all(stumps.allow_nan for stumps in _list_stumps(parts))
    if parts.coef is not None or parts.networks or parts.kernel_sums or needs_complete:
        found.append(functions.COMPLETE.substitute(name=name))
    found += [functions.write_trees(parts.trees, name, parts.n_features)] if parts.trees else []
    found += [functions.write_stumps(stumps, name, k) for k, stumps in enumerate(_list_stumps(parts))]
    found += [functions.write_linear(parts.coef, name)] if parts.coef is not None else []
    activations = {network.activation for _, network in parts.networks}
    found += [functions.write_activation(activation, name) for activation in sorted(activations)]
    found += [functions.write_network(network, name, k) for k, (_, network) in enumerate(parts.networks)]
    found += [functions.write_kernel_sum(own, name, k) for k, (_, own) in enumerate(parts.kernel_sums)]
    return found


def _write_score(parts: ScoreParts, name: str) -> str:
    """Return the functions that add up the parts."""
    terms = [f"{name}_stumps{k}(row)" for k in range(len(_list_stumps(parts)))]
    terms += [f"{name}_linear(row)"] if parts.coef is not None else []
    for kind, own in (("network", parts.networks), ("kernel_sum", parts.kernel_sums)):
        weights = [weight for weight, _ in own]
        terms += [f"{format_value(weight)} * {name}_{kind}{k}(row)" for k, weight in enumerate(weights)]
    row = f"        const float *row = x + i * {parts.n_features};\n" if terms else ""
    sums = [f"    {name}_add_trees(x, n, scores);\n"] if parts.trees else []
    sums += [] if parts.trees or terms else ["    (void)x; /* the score is a constant */\n"]
    terms += [format_value(parts.intercept)] if parts.intercept else []
    if terms:
        lines = "".join(f"        scores[i] += {term};\n" for term in terms)
        sums.append(f"    for (i = 0; i < n; i++) {{\n{row}{lines}    }}\n")
    return _SCORE.substitute(name=name, width=parts.n_features, sums="".join(sums))


def _list_stumps(parts: ScoreParts) -> list[Stumps]:
    """Return the sums of stumps that have any."""
    return [stumps for stumps in parts.stumps if len(stumps)]
