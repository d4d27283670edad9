package yamldoc

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// resolve gives a plain scalar its value by the core schema of YAML 1.2, from
// the text as written: "no" and "1_000" are strings, 0123 is 123. What it
// cannot give as a JSON value it refuses.
func resolve(s string) (any, string) {
	switch s {
	case "", "~", "null", "Null", "NULL":
		return nil, ""
	case "true", "True", "TRUE":
		return true, ""
	case "false", "False", "FALSE":
		return false, ""
	}
	if !strings.Contains("+-.0123456789", s[:1]) {
		return s, ""
	}
	switch strings.ToLower(strings.TrimLeft(s, "+-")) {
	case ".inf", ".nan":
		return nil, "JSON has no infinity and no NaN; put the text in quotes"
	}
	f, ok := number(s)
	if !ok {
		return s, ""
	}
	if math.IsInf(f, 0) {
		return nil, "the number is too large; put it in quotes if it is meant as text"
	}
	return normal(f), ""
}

// number reads a number of the core schema.
func number(s string) (float64, bool) {
	switch {
	case strings.HasPrefix(s, "0x"):
		return integer(s[2:], 16)
	case strings.HasPrefix(s, "0o"):
		return integer(s[2:], 8)
	case !isDecimal(s):
		return 0, false
	}
	// The only error left is a range error, and then f is an infinity.
	f, _ := strconv.ParseFloat(s, 64)
	return f, true
}

func integer(digits string, base int) (float64, bool) {
	if digits == "" || digits[0] == '+' || digits[0] == '-' || strings.Contains(digits, "_") {
		return 0, false
	}
	n, ok := new(big.Int).SetString(digits, base)
	if !ok {
		return 0, false
	}
	f, _ := new(big.Float).SetInt(n).Float64()
	return f, true
}

// isDecimal matches [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)? .
func isDecimal(s string) bool {
	s = strings.TrimPrefix(strings.TrimPrefix(s, "+"), "-")
	s, whole := cutDigits(s)
	fraction := 0
	if rest, ok := strings.CutPrefix(s, "."); ok {
		s, fraction = cutDigits(rest)
	}
	if whole+fraction == 0 {
		return false
	}
	if s == "" {
		return true
	}
	if s[0] != 'e' && s[0] != 'E' {
		return false
	}
	s = s[1:]
	if s != "" && (s[0] == '+' || s[0] == '-') {
		s = s[1:]
	}
	s, exponent := cutDigits(s)
	return exponent > 0 && s == ""
}

// cutDigits returns s without the digits at its start, and their number.
func cutDigits(s string) (rest string, n int) {
	rest = strings.TrimLeft(s, "0123456789")
	return rest, len(s) - len(rest)
}

// normal makes a whole number an int64 if JavaScript's numbers can hold it
// exactly.
func normal(f float64) any {
	const maxSafe = 1<<53 - 1
	if f == math.Trunc(f) && math.Abs(f) <= maxSafe {
		return int64(f)
	}
	return f
}
