package workflowdiff

import (
	"maps"
	"reflect"
	"slices"

	"github.com/united-workforce/uwf/protocol"
)

// schema compares two JSON Schemas: variants of oneOf by their status, objects
// field by field, and all else as it is.
func (d *diff) schema(path []string, a, b any) {
	if reflect.DeepEqual(a, b) {
		return
	}
	before, wasObject := a.(map[string]any)
	after, isObject := b.(map[string]any)
	if !wasObject || !isObject {
		d.value(path, a, b)
		return
	}
	found := len(d.changes)
	aVariants, bVariants := variants(before), variants(after)
	if aVariants != nil && bVariants != nil {
		either(d, path, keys(aVariants, bVariants), aVariants, bVariants, d.schema)
		before, after = without(before, "oneOf"), without(after, "oneOf")
	}
	d.object(path, before, after)
	if len(d.changes) == found { // something whose order is stored
		d.add(Changed, append(slices.Clone(path), "(order)"), a, b)
	}
}

// object compares schemas of objects.
func (d *diff) object(path []string, a, b map[string]any) {
	aFields, bFields := fields(a), fields(b)
	either(d, path, keys(aFields, bFields), aFields, bFields, d.schema)
	aRequired, bRequired := required(a), required(b)
	for _, field := range keys(aRequired, bRequired) {
		at := append(slices.Clone(path), field, "required")
		switch {
		case !aRequired[field]:
			d.add(Added, at, nil, true)
		case !bRequired[field]:
			d.add(Removed, at, true, nil)
		}
	}
	a, b = without(a, "properties", "required"), without(b, "properties", "required")
	either(d, path, keys(a, b), a, b, func(path []string, before, after any) {
		if key := path[len(path)-1]; key == "items" {
			d.schema(path, before, after)
			return
		}
		d.value(path, before, after)
	})
}

// variants are those of oneOf by their status, nil if there are none or not all
// have one.
func variants(schema map[string]any) map[string]any {
	list, _ := schema["oneOf"].([]any)
	byStatus := map[string]any{}
	for _, v := range list {
		variant, _ := v.(map[string]any)
		status, _ := fields(variant)[protocol.StatusKey].(map[string]any)
		name, ok := status["const"].(string)
		if _, twice := byStatus[name]; !ok || twice {
			return nil
		}
		byStatus[name] = v
	}
	if len(byStatus) == 0 {
		return nil
	}
	return byStatus
}

func fields(schema map[string]any) map[string]any {
	f, _ := schema["properties"].(map[string]any)
	return f
}

func required(schema map[string]any) map[string]bool {
	list, _ := schema["required"].([]any)
	set := map[string]bool{}
	for _, v := range list {
		if name, ok := v.(string); ok {
			set[name] = true
		}
	}
	return set
}

func without(m map[string]any, keys ...string) map[string]any {
	m = maps.Clone(m)
	for _, k := range keys {
		delete(m, k)
	}
	return m
}
