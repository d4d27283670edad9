package cas

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"unicode/utf8"
)

// normalize turns a value into the few Go types that stand for canonical CBOR:
// nil, bool, int64, float64, string, []any and map[string]any. It never changes
// what it is given.
func normalize(value any) (any, error) { return normalizeAt(value, 0) }

func normalizeAt(value any, depth int) (any, error) {
	switch v := value.(type) {
	case nil, bool:
		return v, nil
	case string:
		return v, checkText(v)
	case float64:
		return normalizeFloat(v)
	case json.Number:
		return normalizeNumber(v)
	case int:
		return normalizeInt(int64(v)), nil
	case int64:
		return normalizeInt(v), nil
	case uint64:
		if v > maxSafe {
			return float64(v), nil
		}
		return int64(v), nil
	case []any:
		return normalizeList(v, depth+1)
	case map[string]any:
		return normalizeMap(v, depth+1)
	}
	return normalizeOther(value, depth)
}

func normalizeInt(n int64) any {
	if n > maxSafe || n < -maxSafe {
		return float64(n)
	}
	return n
}

func normalizeFloat(f float64) (any, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, fmt.Errorf("%v is not a JSON number", f)
	}
	if f == math.Trunc(f) && math.Abs(f) <= maxSafe {
		return int64(f), nil
	}
	return f, nil
}

func normalizeNumber(n json.Number) (any, error) {
	// Go's parsers also read what JSON does not: 0x10, 1_000, inf.
	if !json.Valid([]byte(n)) {
		return nil, fmt.Errorf("number %.40q is not JSON", string(n))
	}
	if i, err := strconv.ParseInt(string(n), 10, 64); err == nil {
		return normalizeInt(i), nil
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil {
		return nil, fmt.Errorf("number %.40q: %w", string(n), errors.Unwrap(err))
	}
	return normalizeFloat(f)
}

func normalizeList(list []any, depth int) (any, error) {
	if depth > MaxDepth {
		return nil, errTooDeep()
	}
	out := make([]any, len(list))
	for i, v := range list {
		n, err := normalizeAt(v, depth)
		if err != nil {
			return nil, fmt.Errorf("%d: %w", i, err)
		}
		out[i] = n
	}
	return out, nil
}

func normalizeMap(m map[string]any, depth int) (any, error) {
	if depth > MaxDepth {
		return nil, errTooDeep()
	}
	out := make(map[string]any, len(m))
	for k, v := range m {
		if err := checkText(k); err != nil {
			return nil, fmt.Errorf("key: %w", err)
		}
		n, err := normalizeAt(v, depth)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k, err)
		}
		out[k] = n
	}
	return out, nil
}

// normalizeOther takes the way through encoding/json, for structs and named
// types. That package replaces invalid UTF-8 in silence, and a whole number that
// JSON does not hold could not be read back, hence the check.
func normalizeOther(value any, depth int) (any, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	if err := checkExact(reflect.ValueOf(value)); err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	return normalizeAt(v, depth)
}

// checkExact looks at every string and whole number that encoding/json would have
// written. It runs after that package, which has refused cycles.
func checkExact(v reflect.Value) error {
	if !v.IsValid() || v.Type().Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		return checkText(v.String())
	case reflect.Int, reflect.Int64:
		if n := v.Int(); n > maxSafe || n < -maxSafe {
			return fmt.Errorf("%d is beyond what JSON holds exactly", n)
		}
	case reflect.Pointer, reflect.Interface:
		return checkExact(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if err := checkExact(v.Field(i)); err != nil {
				return fmt.Errorf("%s: %w", v.Type().Field(i).Name, err)
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if err := checkExact(v.Index(i)); err != nil {
				return fmt.Errorf("%d: %w", i, err)
			}
		}
	case reflect.Map:
		for k, e := range v.Seq2() {
			if err := errors.Join(checkExact(k), checkExact(e)); err != nil {
				return fmt.Errorf("%v: %w", k, err)
			}
		}
	}
	return nil
}

func checkText(s string) error {
	if utf8.ValidString(s) {
		return nil
	}
	return fmt.Errorf("%.40q is not UTF-8", s)
}

func errTooDeep() error { return fmt.Errorf("more than %d levels deep", MaxDepth) }
