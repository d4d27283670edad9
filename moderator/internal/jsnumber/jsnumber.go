// Package jsnumber parses and formats numbers as JavaScript does, because the template and condition
// languages of workflows come from there.
package jsnumber

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// Format formats a number as JavaScript does: as an integer below 1e21, with the shortest digits that read
// back, and with an exponent below 1e-6.
func Format(f float64) string {
	switch size := math.Abs(f); {
	case f == 0: // also -0
		return "0"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	case size >= 1e-6 && size < 1e21 || math.IsNaN(f):
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	// Go writes at least two digits of exponent, JavaScript one.
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
	return mantissa + "e" + exponent[:1] + strings.TrimLeft(exponent[1:], "0")
}

// Float converts the Go types of a JSON number. It returns false for all other types.
func Float(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case int64:
		return float64(v), true
	case int:
		return float64(v), true
	case uint64:
		return float64(v), true
	case json.Number:
		f, err := v.Float64()
		return f, err == nil
	}
	return 0, false
}
