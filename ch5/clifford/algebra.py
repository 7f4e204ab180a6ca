"""The Clifford algebra of 2 or 3 dimensions, worked out from its signature: blades, grades, products, paths, terms.

A blade is an increasing tuple of axes: () is the scalar 1, (1, 2) is e1 e2. An algebra of d dimensions has 2**d of
them, in order of grade (their length) and then of axes. Every axis squares to +1. A path is a triple of grades
(left, right, out) that occurs in some product of two blades; a layer learns one weight for each path. A term
(i, j, k, sign, path) says that blade i times blade j is sign times blade k, and by which path: a product of two
multivectors is the sum of all 4**d terms.
"""

from itertools import combinations

Term = tuple[int, int, int, int, int]
Products = tuple[tuple[int, int, int], ...]  # of a left and a right blade, with a sign
Sums = tuple[tuple[tuple[int, Products], ...], ...]  # for each path: for some blades, what they are the sum of
SIGNATURE = +1  # what e_a e_a is, for every axis a: the Euclidean algebra


def multiply(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    """The product of two blades: its sign and its blade. Sorting the axes costs -1 a swap; equal neighbours cancel."""
    axes, sign = [*left, *right], 1
    for end in range(len(axes) - 1, 0, -1):  # a bubble sort, because its swaps are of neighbours
        for a in range(end):
            if axes[a] > axes[a + 1]:
                axes[a], axes[a + 1], sign = axes[a + 1], axes[a], -sign
    for axis in sorted(set(left) & set(right)):  # a blade has an axis once at most, so both have it: a pair
        axes = [other for other in axes if other != axis]
        sign *= SIGNATURE
    return sign, tuple(axes)


class Algebra:
    """The algebra of `dimensions` axes. Raises ValueError unless that is 2 or 3.

    blades: the 2**dimensions blades by their axes, (), (1,), (2,), (1, 2) for two dimensions.
    grades: the grade of each blade, (0, 1, 1, 2) for two dimensions.
    sizes, starts: for each grade how many blades it has and which is the first, (1, 2, 1) and (0, 1, 3).
    paths: the triples of grades (left, right, out) that occur, sorted by left, out, right: 10 in 2D, 20 in 3D.
    terms: all (i, j, k, sign, path), sorted by k, path, i.
    """

    def __init__(self, dimensions: int) -> None:
        if dimensions not in (2, 3):
            raise ValueError(f"dimensions must be 2 or 3, not {dimensions!r}")
        self.dimensions, grades = dimensions, range(dimensions + 1)
        axes = range(1, dimensions + 1)
        self.blades = tuple(blade for grade in grades for blade in combinations(axes, grade))
        self.grades = tuple(len(blade) for blade in self.blades)
        self.sizes = tuple(self.grades.count(grade) for grade in grades)
        self.starts = tuple(self.grades.index(grade) for grade in grades)
        self.paths = self._paths()
        self.terms = self._terms()
        self._sums = {places: self._sums_of(*places) for places in ((2, 0, 1), (0, 1, 2), (1, 0, 2))}

    def product(self, i: int, j: int) -> tuple[int, int]:
        """(sign, k) such that blade i times blade j is sign times blade k."""
        sign, blade = multiply(self.blades[i], self.blades[j])
        return sign, self.blades.index(blade)

    def sums(self, out: int, left: int, right: int) -> Sums:
        """For each path, what it adds up: ((blade, ((left blade, right blade, sign), ...)), ...).

        `out`, `left`, `right` are places in a term: (2, 0, 1) gives the product of x and y; (0, 1, 2) the gradient of x
        from y and the gradient of the product; (1, 0, 2) that of y from x.
        """
        return self._sums[out, left, right]  # made beforehand: torch.compile would trace the making

    def _paths(self) -> tuple[tuple[int, int, int], ...]:
        indices = range(len(self.blades))
        found = {(self.grades[i], self.grades[j], self.grades[self.product(i, j)[1]]) for i in indices for j in indices}
        return tuple(sorted(found, key=lambda path: (path[0], path[2], path[1])))

    def _terms(self) -> tuple[Term, ...]:
        found = []
        for i, left in enumerate(self.grades):
            for j, right in enumerate(self.grades):
                sign, k = self.product(i, j)
                found.append((i, j, k, sign, self.paths.index((left, right, self.grades[k]))))
        return tuple(sorted(found, key=lambda term: (term[2], term[4], term[0])))

    def _sums_of(self, out: int, left: int, right: int) -> Sums:
        found: list[dict[int, list[tuple[int, int, int]]]] = [{} for _ in self.paths]
        for term in self.terms:
            found[term[4]].setdefault(term[out], []).append((term[left], term[right], term[3]))
        return tuple(tuple((blade, tuple(path[blade])) for blade in sorted(path)) for path in found)


ALGEBRAS = {dimensions: Algebra(dimensions) for dimensions in (2, 3)}


def algebra(dimensions: int) -> Algebra:
    """The algebra of 2 or 3 dimensions. Raises ValueError for others."""
    return ALGEBRAS[dimensions] if dimensions in ALGEBRAS else Algebra(dimensions)
