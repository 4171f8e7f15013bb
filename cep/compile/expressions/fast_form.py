"""The fast forms of an expression: code that raises when something fails.

A condition is asked "are you true?" or "are you false?", and `not` turns one question into the
other, so nothing three-valued is left at run time. An operand is a piece of code with the tests
that must hold before it may be evaluated (`x is not None`); conditions string those together with
`and`, values stand behind an `if`. `_Facts` carries along what an earlier test has shown, so that
nothing is loaded or tested twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from cep.compile.expressions.analysis import LOGIC, Analysis
from cep.compile.expressions.call import (
    AND,
    ATOM,
    COMPARE,
    NOT,
    OR,
    SUM,
    TERM,
    TERNARY,
    UNARY,
    Call,
    boolean_or_bare,
    is_leaf,
)
from cep.compile.expressions.calls import as_call, choices, is_choice, missing_test
from cep.compile.expressions.code import (
    NAME,
    SIMPLE,
    after,
    bound,
    constant_code,
    enclosed,
    none_test,
    ternary,
)
from cep.compile.expressions.env import Env
from cep.compile.expressions.operators import inline_flags
from cep.runtime import functions
from dsl.checked import (
    ArrayOf,
    CallFunction,
    Comparison,
    Conjunction,
    Const,
    Disjunction,
    IsMissing,
    IsNull,
    Local,
    NamedList,
    Negation,
    Pattern,
    Quantified,
    Value,
)
from dsl.types import Type


@dataclass(slots=True)
class _Facts:
    """What is known where a piece of code will run: temporaries bound, leaves that are not null.

    `locals` are the variables of `any` and `all` around. `leaves` tells what each temporary of the
    expression holds, bound here or not.
    """

    names: dict[Value, str] = field(default_factory=dict)
    present: set[Value] = field(default_factory=set)
    locals: dict[str, str] = field(default_factory=dict)
    leaves: dict[str, Value] = field(default_factory=dict)

    def copy(self) -> _Facts:
        return _Facts(dict(self.names), set(self.present), self.locals, self.leaves)


@dataclass(frozen=True, slots=True)
class _Operand:
    """Code of a value. `tests` must hold, in order, for it to be evaluated; when one does not, the
    value is null. `nullable`: the code itself may still give None. `leaf`: it loads just that."""

    code: str
    precedence: int = ATOM
    tests: tuple[str, ...] = ()
    nullable: bool = False
    leaf: Value | None = None


@dataclass(frozen=True, slots=True)
class _Condition:
    """Code of a question; `bound` are temporaries that it binds whatever the answer is."""

    code: str
    precedence: int
    bound: dict[Value, str] = field(default_factory=dict)


class FastForm:
    """Writes the fast forms of one expression."""

    def __init__(self, root: Value, env: Env) -> None:
        self.root = root
        self.env = env
        self.analysis = Analysis(root, env)

    def condition(self, positive: bool) -> str:
        """Code that is truthy when the expression is true (or false, when not `positive`)."""
        before = self._early()
        return after(before, self._condition(self.root, positive, _Facts()).code)

    def value(self) -> str:
        """Code of the expression's value."""
        before = self._early()
        return after(before, self._whole(self.root, _Facts()).code)

    def _early(self) -> list[str]:
        """Assignments of the parts that are computed first."""
        early = self.analysis.early
        found = []
        for part in self.analysis.early_parts:
            name = early.pop(id(part))
            found.append(f"{name} := {_grouped(self._whole(part, _Facts()))}")
            early[id(part)] = name
        return found

    # ------------------------------------------------------------------------ conditions

    def _condition(self, value: Value, positive: bool, facts: _Facts) -> _Condition:
        """The question whether `value` is true, or false. Afterwards `facts` holds what is known
        when the answer is yes."""
        if id(value) in self.analysis.early:
            return self._of_value(value, positive, facts)
        if isinstance(value, Negation):
            return self._condition(value.operand, not positive, facts)
        if isinstance(value, Comparison) and value.op == "!=":
            return self._call(self._opposite(value), not positive, facts)
        if isinstance(value, Conjunction | Disjunction):
            both = isinstance(value, Conjunction) is positive
            return (self._all if both else self._any)(value.parts, positive, facts)
        if isinstance(value, IsNull):
            return self._is_null(value, positive, facts)
        if isinstance(value, IsMissing):
            return self._is_missing(value, positive, facts)
        if isinstance(value, Quantified):
            return self._quantified(value, positive, facts)
        if isinstance(value, CallFunction) and value.function == "if":
            return self._if_condition(value, positive, facts)
        call = as_call(value, self.analysis)
        if call is not None and call.type is Type.BOOL and not call.nullable:
            return self._call(call, positive, facts)
        return self._of_value(value, positive, facts)

    def _opposite(self, value: Comparison) -> Call:
        call = as_call(replace(value, op="=="), self.analysis)
        assert call is not None
        return call

    def _all(self, parts: tuple[Value, ...], positive: bool, facts: _Facts) -> _Condition:
        found = [self._condition(part, positive, facts) for part in parts]
        code = " and ".join(bound(c.code, c.precedence, AND) for c in found)
        return _Condition(code, AND if len(found) > 1 else found[0].precedence, found[0].bound)

    def _any(self, parts: tuple[Value, ...], positive: bool, facts: _Facts) -> _Condition:
        first = self._condition(parts[0], positive, facts.copy())
        facts.names.update(first.bound)
        found = [first, *(self._condition(p, positive, facts.copy()) for p in parts[1:])]
        code = " or ".join(bound(c.code, c.precedence, OR) for c in found)
        return _Condition(code, OR if len(found) > 1 else first.precedence, first.bound)

    def _call(self, call: Call, positive: bool, facts: _Facts) -> _Condition:
        """A comparison, or a function that answers yes or no."""
        relaxed = self._relaxed(call, facts) if positive else frozenset()
        operands = [
            self._operand(operand, facts) if i in relaxed else self._argument(call, operand, facts)
            for i, operand in enumerate(call.operands)
        ]
        tests, operands = self._named(call, operands)
        code, precedence = self._written(call, operands, negative=not positive)
        return self._guarded(tests, code, precedence, facts)

    def _argument(self, call: Call, value: Value, facts: _Facts) -> _Operand:
        """An operand, tested where the function takes no null."""
        if not call.strict:
            return self._whole(value, facts.copy())
        return self._sure(self._operand(value, facts), facts)

    def _relaxed(self, call: Call, facts: _Facts) -> frozenset[int]:
        """Operands that need no test: one that is null gives something untrue by itself."""
        plain = frozenset(
            i
            for i in call.none_safe
            if is_leaf(call.operands[i]) or isinstance(call.operands[i], Local)
        )
        if len(plain) < 2:
            return plain
        right = self._operand(call.operands[1], facts)  # null == null would be true
        return frozenset({1}) if right.nullable else frozenset({0})

    def _guarded(
        self, tests: Sequence[str], code: str, precedence: int, facts: _Facts
    ) -> _Condition:
        """`code`, asked when the tests hold. The first test is evaluated whatever the answer."""
        if not tests:
            return _Condition(code, precedence)
        name = tests[0][1:].partition(" := ")[0]
        leaf = facts.leaves.get(name)
        always = {} if leaf is None else {leaf: name}
        return _Condition(" and ".join([*tests, bound(code, precedence, AND)]), AND, always)

    def _of_value(self, value: Value, positive: bool, facts: _Facts) -> _Condition:
        """A value where a condition stands: it holds only when it is the boolean asked for."""
        operand = self._operand(value, facts)
        if isinstance(value, Const):
            return _Condition(str(value.value is positive), ATOM)
        code = bound(operand.code, operand.precedence, SUM)
        if not boolean_or_bare(value, self.analysis):
            code = f"{self.env.constant(functions.answer)}({operand.code})"
        return self._guarded(operand.tests, f"{code} is {positive}", COMPARE, facts)

    def _is_null(self, value: IsNull, positive: bool, facts: _Facts) -> _Condition:
        operand = self._operand(value.operand, facts.copy())
        if operand.leaf is not None and not operand.nullable:
            return _Condition(str(not positive), ATOM)
        whole = self._joined(operand)
        code = none_test(bound(*whole, needed=SUM), positive)
        if not positive and operand.leaf is not None:
            facts.present.add(operand.leaf)
        return _Condition(code, COMPARE)

    def _is_missing(self, value: IsMissing, positive: bool, facts: _Facts) -> _Condition:
        leaf = value.operand
        if is_leaf(leaf):
            code = self.env.is_missing(leaf)
            return _Condition(
                f"({code})" if positive else f"not ({code})", ATOM if positive else NOT
            )
        call = missing_test(leaf)
        if call is None:
            return _Condition(str(not positive), ATOM)
        return self._call(call, positive, facts)

    def _quantified(self, value: Quantified, positive: bool, facts: _Facts) -> _Condition:
        array = self._array(value, facts)
        inner, variable = self._inside(value, facts)
        condition = self._condition(value.condition, positive, inner)
        function = "all" if value.every is positive else "any"
        code = f"{function}({condition.code} for {variable} in {array.code})"
        return self._guarded(array.tests, code, ATOM, facts)

    def _array(self, value: Quantified, facts: _Facts) -> _Operand:
        """The array that `any` or `all` goes through, as code that stands after `in`."""
        array = self._sure(self._operand(value.array, facts), facts)
        if self.analysis.known(value.array) is not Type.ARRAY:
            name = self.env.constant(functions.elements)
            array = replace(array, code=f"{name}({array.code})", precedence=ATOM)
        if ":=" in array.code:  # Python forbids it there
            array = self._through_temporary(array)
        return replace(array, code=bound(array.code, array.precedence, OR))

    def _inside(self, value: Quantified, facts: _Facts) -> tuple[_Facts, str]:
        variable = self.env.temporary()
        inner = facts.copy()
        inner.locals = {**facts.locals, value.variable: variable}
        inner.present = {
            leaf
            for leaf in facts.present
            if not (isinstance(leaf, Local) and leaf.name == value.variable)
        }
        return inner, variable

    def _if_condition(self, value: CallFunction, positive: bool, facts: _Facts) -> _Condition:
        test, yes, no = value.arguments
        inside = facts.copy()
        asked = self._condition(test, True, inside)
        facts.names.update(asked.bound)
        then = self._condition(yes, positive, inside)
        other = self._condition(no, positive, facts.copy())
        return _Condition(ternary(then.code, asked.code, other.code), TERNARY, asked.bound)

    # ------------------------------------------------------------------------ values

    def _operand(self, value: Value, facts: _Facts) -> _Operand:
        name = self.analysis.early.get(id(value))
        if name is not None:
            return _Operand(name, nullable=True)
        if isinstance(value, Const):
            code, precedence = constant_code(value.value, self.env)
            return _Operand(code, precedence, nullable=value.value is None)
        if isinstance(value, Local):
            return _Operand(
                facts.locals[value.name], nullable=value not in facts.present, leaf=value
            )
        if is_leaf(value):
            return self._leaf(value, facts)
        if isinstance(value, Pattern):
            return _Operand(repr(inline_flags(value)))
        if isinstance(value, NamedList):
            return _Operand(self.env.constant(list(self.env.list_items(value.name))))
        if isinstance(value, ArrayOf):
            items = [self._whole(item, facts.copy()) for item in value.items]
            return _Operand("[" + ", ".join(map(_grouped, items)) + "]")
        if isinstance(value, LOGIC):
            return self._answer(value, facts)
        if isinstance(value, CallFunction) and value.function == "if":
            return self._if_value(value, facts)
        if is_choice(value):
            return self._first_present(choices(value), facts)
        call = as_call(value, self.analysis)
        assert call is not None, f"no code for {type(value).__name__}"
        return self._call_value(call, facts)

    def _leaf(self, leaf: Value, facts: _Facts) -> _Operand:
        code = facts.names.get(leaf)
        if code is None:
            code = self.env.load(leaf)
        nullable = leaf not in facts.present and self.env.nullable(leaf)
        if not SIMPLE.fullmatch(code) and not enclosed(code):
            code = f"({code})"
        return _Operand(code, nullable=nullable, leaf=leaf)

    def _sure(self, operand: _Operand, facts: _Facts) -> _Operand:
        """The operand with tests that leave its code never None."""
        if not operand.nullable:
            return operand
        if operand.code == "None":
            return replace(operand, tests=(*operand.tests, "False"), nullable=False)
        if NAME.fullmatch(operand.code) or (facts.locals and SIMPLE.fullmatch(operand.code)):
            test = f"{operand.code} is not None"
            operand = replace(operand, tests=(*operand.tests, test), nullable=False)
        else:
            operand = self._through_temporary(operand)
            if operand.leaf is not None:
                facts.names[operand.leaf] = operand.code
                facts.leaves[operand.code] = operand.leaf
        if operand.leaf is not None:
            facts.present.add(operand.leaf)
        return operand

    def _through_temporary(self, operand: _Operand) -> _Operand:
        name = self.env.temporary()
        code = operand.code[1:-1] if enclosed(operand.code) else operand.code
        test = f"({name} := {code}) is not None"
        return replace(
            operand, code=name, precedence=ATOM, tests=(*operand.tests, test), nullable=False
        )

    def _named(self, call: Call, operands: list[_Operand]) -> tuple[list[str], list[_Operand]]:
        """The operands, those that the code repeats under a name; and all their tests."""
        named = [
            self._through_temporary(operand)
            if i in call.repeats and call.inline and not SIMPLE.fullmatch(operand.code)
            else operand
            for i, operand in enumerate(operands)
        ]
        return [test for operand in named for test in operand.tests], named

    def _written(
        self, call: Call, operands: Sequence[_Operand], negative: bool = False
    ) -> tuple[str, int]:
        """The code of a call with its operands, or that of its opposite."""
        if call.inline is None:
            code = f"{self.env.constant(call.function)}({', '.join(o.code for o in operands)})"
            return (f"not {code}", NOT) if negative else (code, ATOM)
        codes = [
            bound(operand.code, operand.precedence, _needed(call, i))
            for i, operand in enumerate(operands)
        ]
        if not negative:
            return call.inline.format(*codes), call.precedence
        if call.negated is not None:
            return call.negated.format(*codes), COMPARE if call.precedence == COMPARE else ATOM
        code = call.inline.format(*codes)
        return f"not {bound(code, call.precedence, NOT)}", NOT

    def _call_value(self, call: Call, facts: _Facts) -> _Operand:
        operands = [self._argument(call, operand, facts) for operand in call.operands]
        tests, operands = self._named(call, operands)
        code, precedence = self._written(call, operands)
        return _Operand(code, precedence, tuple(tests), call.nullable)

    def _if_value(self, value: CallFunction, facts: _Facts) -> _Operand:
        test, yes, no = value.arguments
        inside = facts.copy()
        asked = self._condition(test, True, inside)
        outside = facts.copy()
        outside.names.update(asked.bound)
        then, other = self._whole(yes, inside), self._whole(no, outside)
        return _Operand(ternary(then.code, asked.code, other.code), TERNARY, nullable=True)

    def _first_present(self, values: Sequence[Value], facts: _Facts) -> _Operand:
        """`a ?? b ?? c`"""
        code, precedence = "None", ATOM
        for value in reversed(values):
            operand = self._whole(value, facts.copy())
            if code == "None":
                code, precedence = operand.code, operand.precedence
                continue
            name = self.env.temporary()
            code = f"{name} if ({name} := {operand.code}) is not None else {code}"
            precedence = TERNARY
        return _Operand(code, precedence, nullable=True)

    def _whole(self, value: Value, facts: _Facts) -> _Operand:
        """The value as one piece of code, None for null."""
        operand = self._operand(value, facts)
        code, precedence = self._joined(operand)
        return _Operand(code, precedence, nullable=True)

    def _joined(self, operand: _Operand) -> tuple[str, int]:
        if not operand.tests:
            return operand.code, operand.precedence
        return ternary(operand.code, " and ".join(operand.tests), "None"), TERNARY

    # ------------------------------------------------------------------------ answers as values

    def _answer(self, value: Value, facts: _Facts) -> _Operand:
        """The answer of a condition as a value: True, False, or null when it is unknown."""
        if isinstance(value, Negation):
            return self._negated(self._boolean(value.operand, facts), facts)
        if isinstance(value, Comparison) and value.op == "!=":
            return self._negated(self._call_value(self._opposite(value), facts), facts)
        if isinstance(value, Comparison):
            call = as_call(value, self.analysis)
            assert call is not None
            return self._call_value(call, facts)
        if isinstance(value, Conjunction | Disjunction):
            return self._combined(value, facts)
        if isinstance(value, Quantified):
            return self._quantified_answer(value, facts)
        condition = self._condition(value, True, facts.copy())
        return _Operand(condition.code, condition.precedence)

    def _negated(self, operand: _Operand, facts: _Facts) -> _Operand:
        sure = self._sure(operand, facts)
        return replace(
            sure, code=f"not {bound(sure.code, sure.precedence, NOT)}", precedence=NOT, leaf=None
        )

    def _combined(self, value: Conjunction | Disjunction, facts: _Facts) -> _Operand:
        decisive = isinstance(value, Disjunction)
        names, asked = [], []
        for part in value.parts:
            name = self.env.temporary()
            names.append(name)
            answer, _ = self._joined(self._boolean(part, facts.copy()))
            asked.append(f"({name} := {answer}) is {decisive}")
        unknown = " or ".join(f"{name} is None" for name in names)
        rest = ternary("None", unknown, str(not decisive))
        return _Operand(ternary(str(decisive), " or ".join(asked), rest), TERNARY, nullable=True)

    def _boolean(self, part: Value, facts: _Facts) -> _Operand:
        """A part of a logical operator as True, False or null, whatever else it may be."""
        operand = self._operand(part, facts)
        if isinstance(part, LOGIC):
            return operand
        code = f"{self.env.constant(functions.answer)}({operand.code})"
        return replace(operand, code=code, precedence=ATOM, nullable=True, leaf=None)

    def _quantified_answer(self, value: Quantified, facts: _Facts) -> _Operand:
        array = self._array(value, facts)
        inner, variable = self._inside(value, facts)
        function = self.env.constant(functions.every if value.every else functions.some)
        code, _ = self._joined(self._boolean(value.condition, inner))
        return replace(
            array,
            code=f"{function}([{code} for {variable} in {array.code}])",
            precedence=ATOM,
            nullable=True,
            leaf=None,
        )


def _needed(call: Call, i: int) -> int:
    """How tightly the code of operand `i` must bind inside a call's own code."""
    assert call.inline is not None
    if f"{{{i}}}." in call.inline:
        return ATOM
    if call.precedence in (SUM, TERM):
        return call.precedence + (i > 0)
    return UNARY if call.precedence == UNARY else SUM


def _grouped(operand: _Operand) -> str:
    return bound(operand.code, operand.precedence, OR)
