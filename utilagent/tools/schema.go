package tools

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// maxSchemaDepth bounds how deep a type may be nested; one that holds itself is
// deeper than anything.
const maxSchemaDepth = 10

// errType is for a type that arguments cannot have.
var errType = errors.New("cannot be described to a model")

// schemaOf describes a struct as the arguments of a tool. Fields are named as in
// encoding/json. The tag doc tells the model what a field is, enum lists the
// values of a string, separated by commas. A field is required unless it is a
// pointer or its json tag says omitempty or omitzero. A type that reads itself
// from text is a string.
func schemaOf(t reflect.Type) (map[string]any, error) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("arguments are a %s, not a struct: %w", t, errType)
	}
	return structSchema(t, maxSchemaDepth)
}

func structSchema(t reflect.Type, depth int) (map[string]any, error) {
	properties, required := map[string]any{}, []string{}
	for _, f := range reflect.VisibleFields(t) {
		name, optional, ok := jsonName(f)
		if !ok || len(f.Index) > 1 && !promoted(t, f) {
			continue
		}
		p, err := typeSchema(f.Type, depth-1)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", t.Name(), f.Name, err)
		}
		if doc := f.Tag.Get("doc"); doc != "" {
			p["description"] = doc
		}
		if values := f.Tag.Get("enum"); values != "" {
			p["enum"] = strings.Split(values, ",")
		}
		properties[name] = p
		if !optional {
			required = append(required, name)
		}
	}
	return object(required, properties), nil
}

// jsonName is the name of a field in JSON; false if it has none there.
func jsonName(f reflect.StructField) (name string, optional, ok bool) {
	tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	if !f.IsExported() || tag == "-" && options == "" || f.Anonymous && tag == "" && isStruct(f.Type) {
		return "", false, false
	}
	optional = f.Type.Kind() == reflect.Pointer
	for _, o := range strings.Split(options, ",") {
		optional = optional || o == "omitempty" || o == "omitzero"
	}
	if tag == "" {
		tag = f.Name
	}
	return tag, optional, true
}

// promoted tells whether a field of an embedded struct counts as one of t.
func promoted(t reflect.Type, f reflect.StructField) bool {
	for i := range f.Index[:len(f.Index)-1] {
		outer := t.FieldByIndex(f.Index[:i+1])
		tag, _, _ := strings.Cut(outer.Tag.Get("json"), ",")
		if tag != "" || !isStruct(outer.Type) {
			return false
		}
	}
	return true
}

func isStruct(t reflect.Type) bool {
	return t.Kind() == reflect.Struct || t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct
}

var (
	textType = reflect.TypeFor[encoding.TextUnmarshaler]()
	jsonType = reflect.TypeFor[json.Unmarshaler]()
)

func typeSchema(t reflect.Type, depth int) (map[string]any, error) {
	if depth == 0 {
		return nil, fmt.Errorf("%s is nested too deep: %w", t, errType)
	}
	switch {
	case reflect.PointerTo(t).Implements(textType):
		return map[string]any{"type": "string"}, nil
	case reflect.PointerTo(t).Implements(jsonType):
		return map[string]any{}, nil // it reads what it likes
	}
	switch t.Kind() {
	case reflect.Pointer:
		return typeSchema(t.Elem(), depth)
	case reflect.String:
		return map[string]any{"type": "string"}, nil
	case reflect.Bool:
		return map[string]any{"type": "boolean"}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return map[string]any{"type": "integer"}, nil
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}, nil
	case reflect.Struct:
		return structSchema(t, depth)
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return map[string]any{}, nil
		}
	case reflect.Slice, reflect.Array:
		items, err := typeSchema(t.Elem(), depth-1)
		return map[string]any{"type": "array", "items": items}, err
	case reflect.Map:
		if t.Key().Kind() == reflect.String {
			values, err := typeSchema(t.Elem(), depth-1)
			return map[string]any{"type": "object", "additionalProperties": values}, err
		}
	}
	return nil, fmt.Errorf("%s %w", t, errType)
}
