package extract

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"

	"github.com/united-workforce/uwf/util/exactjson"
)

// jsonValue makes any Go value that can be written as JSON a JSON value: whole
// numbers within ±(2^53−1) are int64, all others float64.
func jsonValue(v any) (any, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var out any
	if err := dec.Decode(&out); err != nil {
		return nil, err
	}
	return numbers(out)
}

// numbers replaces the numbers in a decoded value.
func numbers(v any) (any, error) {
	var err error
	switch v := v.(type) {
	case json.Number:
		if !exactjson.Keeps(v.String()) {
			return nil, errors.New(exactjson.NotKept(v.String()))
		}
		f, err := v.Float64()
		if err != nil {
			return nil, err
		}
		const maxSafe = 1<<53 - 1
		if f == math.Trunc(f) && math.Abs(f) <= maxSafe {
			return int64(f), nil
		}
		return f, nil
	case map[string]any:
		for name, item := range v {
			if v[name], err = numbers(item); err != nil {
				return nil, err
			}
		}
	case []any:
		for i, item := range v {
			if v[i], err = numbers(item); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}
