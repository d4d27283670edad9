package render

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/united-workforce/uwf/util/yamltext"
)

// yamlFromJSON writes JSON as YAML with the same keys in the same order.
func yamlFromJSON(data []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	v, err := ordered(dec)
	if err != nil {
		return nil, err
	}
	return yamltext.Marshal(v)
}

// ordered reads the next JSON value, objects as mappings in their order.
func ordered(dec *json.Decoder) (any, error) {
	tok, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch tok {
	case json.Delim('{'):
		return orderedMap(dec)
	case json.Delim('['):
		return orderedList(dec)
	}
	return tok, nil
}

func orderedMap(dec *json.Decoder) (any, error) {
	m := yamltext.Map{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		value, err := ordered(dec)
		if err != nil {
			return nil, err
		}
		m = append(m, yamltext.Entry{Key: fmt.Sprint(key), Value: value})
	}
	_, err := dec.Token() // the closing brace
	return m, err
}

func orderedList(dec *json.Decoder) (any, error) {
	l := yamltext.List{}
	for dec.More() {
		value, err := ordered(dec)
		if err != nil {
			return nil, err
		}
		l = append(l, value)
	}
	_, err := dec.Token() // the closing bracket
	return l, err
}
