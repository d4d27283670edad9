// Package jsnumber reads and prints numbers as JavaScript does: templates and
// conditions of workflows came from there, and so do the expectations of their
// authors.
package jsnumber

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// Format writes a number as JavaScript does: whole up to 1e21, the shortest
// digits that read back, an exponent below 1e-6.
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
	// Go writes two digits of exponent at least, JavaScript one.
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
	return mantissa + "e" + exponent[:1] + strings.TrimLeft(exponent[1:], "0")
}

// Float reads the types of Go that a JSON number may have; false for all others.
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
