package jsonata

import (
	"math"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/moderator/internal/jsnumber"
	"github.com/united-workforce/uwf/util/lazyregexp"
)

func (c *call) toNumber() (any, error) {
	switch v := c.args[0].(type) {
	case undefined:
		return v, nil
	case bool:
		if v {
			return 1.0, nil
		}
		return 0.0, nil
	case string:
		if f, ok := parseNumber(v); ok {
			return f, nil
		}
		return nil, c.failValue(v, "D3030", "%s is no number", describe(v))
	}
	return c.args[0], nil
}

// parseNumber reads what JSON reads, leading zeros too, and 0x, 0o, 0b.
func parseNumber(text string) (float64, bool) {
	if decimal().MatchString(text) {
		f, err := strconv.ParseFloat(text, 64)
		return f, err == nil && isFinite(f)
	}
	if len(text) < 3 || text[0] != '0' {
		return 0, false
	}
	base := map[byte]int{'x': 16, 'o': 8, 'b': 2}[text[1]|0x20]
	if base == 0 {
		return 0, false
	}
	n, err := strconv.ParseUint(text[2:], base, 64)
	return float64(n), err == nil
}

// decimal is what looks like a number; ParseFloat reads more.
var decimal = lazyregexp.New(`^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// numeric wraps a function of one number.
func (c *call) numeric(f func(float64) float64) (any, error) {
	return f(c.num(0, 0)), nil
}

func (c *call) abs() (any, error)   { return c.numeric(math.Abs) }
func (c *call) floor() (any, error) { return c.numeric(math.Floor) }
func (c *call) ceil() (any, error)  { return c.numeric(math.Ceil) }

// round rounds halves to the even neighbour.
func (c *call) round() (any, error) {
	places := int(max(min(c.num(1, 0), 400), -400))
	return c.numeric(func(f float64) float64 {
		return shift(math.RoundToEven(shift(f, places)), -places)
	})
}

// shift multiplies with a power of ten in decimal notation, where it is exact.
func shift(f float64, places int) float64 {
	if places == 0 || !isFinite(f) {
		return f
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
	n, err := strconv.Atoi(exponent)
	if err != nil {
		return f
	}
	// Out of range, ParseFloat gives 0 or infinity, which is the value.
	shifted, _ := strconv.ParseFloat(mantissa+"e"+strconv.Itoa(n+places), 64)
	return shifted
}

func (c *call) power() (any, error) {
	base, exponent := c.num(0, 0), c.num(1, math.NaN())
	f := math.Pow(base, exponent)
	if !isFinite(f) || math.IsNaN(exponent) {
		return nil, c.fail("D3061", "%s to the power of %s is no number that JSON can hold", jsnumber.Format(base), jsnumber.Format(exponent))
	}
	return f, nil
}

func (c *call) sqrt() (any, error) {
	if c.num(0, 0) < 0 {
		return nil, c.failValue(c.args[0], "D3060", "there is no square root of %s", describe(c.args[0]))
	}
	return c.numeric(math.Sqrt)
}

func (c *call) formatBase() (any, error) {
	radix := math.RoundToEven(c.num(1, 10))
	if !(radix >= 2 && radix <= 36) {
		return nil, c.failValue(c.args[1], "D3100", "the base must be from 2 to 36, not %s", describe(c.args[1]))
	}
	f := math.RoundToEven(c.num(0, 0))
	if math.Abs(f) > 1<<53 || math.IsNaN(f) {
		return nil, c.failValue(c.args[0], "D3100", "%s is too large to be written in another base", jsnumber.Format(f))
	}
	return strconv.FormatInt(int64(f), int(radix)), nil
}

// numbers are the items of an argument that the signature says are numbers.
func (c *call) numbers() ([]float64, error) {
	l := asList(c.args[0])
	if err := c.spend(l.len()); err != nil {
		return nil, err
	}
	numbers := make([]float64, l.len())
	for i := range numbers {
		numbers[i], _ = jsnumber.Float(l.item(i))
	}
	return numbers, nil
}

func (c *call) sum() (any, error) {
	numbers, err := c.numbers()
	total := 0.0
	for _, f := range numbers {
		total += f
	}
	return total, err
}

// fold is a function of at least one number; it has no value for an empty list.
func (c *call) fold(f func(numbers []float64) float64) (any, error) {
	numbers, err := c.numbers()
	if err != nil || len(numbers) == 0 {
		return undefined{}, err
	}
	return f(numbers), nil
}

func (c *call) average() (any, error) {
	return c.fold(func(numbers []float64) float64 {
		total := 0.0
		for _, f := range numbers {
			total += f
		}
		return total / float64(len(numbers))
	})
}

func (c *call) max() (any, error) {
	return c.fold(func(numbers []float64) float64 {
		most := numbers[0]
		for _, f := range numbers {
			most = max(most, f)
		}
		return most
	})
}

func (c *call) min() (any, error) {
	return c.fold(func(numbers []float64) float64 {
		least := numbers[0]
		for _, f := range numbers {
			least = min(least, f)
		}
		return least
	})
}
