package tools

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// otherNames are the names that models use for a parameter because another
// agent's tool has it under that name.
var otherNames = map[string][]string{
	"path":       {"file_path", "filepath", "filename", "file", "dir", "directory", "dir_path", "target_file"},
	"command":    {"cmd", "script"},
	"content":    {"contents", "text", "file_text"},
	"old_string": {"old_str", "old_text", "search", "old"},
	"new_string": {"new_str", "new_text", "replace", "new"},
	"cwd":        {"workdir", "working_directory", "work_dir"},
	"offset":     {"start_line", "start", "line"},
	"limit":      {"max_lines", "line_count", "max_results", "head_limit"},
	"pattern":    {"query", "regex", "regexp"},
	"glob":       {"include", "file_pattern", "file_glob"},
	"url":        {"uri", "link", "href"},
	"edits":      {"changes", "replacements"},
}

// normalize makes arguments fit a tool's schema where the model's intention is
// plain: other names of a parameter, numbers and booleans written as strings,
// lists and objects written as JSON, one value where a list of it is wanted.
// Unknown arguments are dropped. What stays wrong is an error that names every
// problem.
func normalize(spec Spec, args map[string]any) (map[string]any, error) {
	out, problems := fit(spec.Parameters, args, "")
	if len(problems) > 0 {
		return nil, fmt.Errorf("%s: %s. Call it again with %s", spec.Name, strings.Join(problems, "; "), usage(spec.Parameters))
	}
	return out, nil
}

// fit makes an object fit its schema. Problems are told with the place before
// the name, such as "edits[2].".
func fit(schema, args map[string]any, place string) (out map[string]any, problems []string) {
	properties, _ := schema["properties"].(map[string]any)
	required := names(schema["required"])
	out = map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		v, ok := find(args, name, properties)
		if !ok || v == nil {
			if slices.Contains(required, name) {
				problems = append(problems, place+name+" is missing")
			}
			continue
		}
		property, _ := properties[name].(map[string]any)
		v, wrong := fitValue(property, v, place+name)
		if len(wrong) > 0 {
			problems = append(problems, wrong...)
			continue
		}
		out[name] = v
	}
	return out, problems
}

// fitValue makes a value fit its schema, and what is in it.
func fitValue(schema map[string]any, v any, place string) (any, []string) {
	typ, _ := schema["type"].(string)
	v, ok := coerce(v, typ)
	if !ok {
		return nil, []string{fmt.Sprintf("%s must be of type %s", place, typ)}
	}
	if allowed := names(schema["enum"]); len(allowed) > 0 && typ == "string" {
		if i := slices.IndexFunc(allowed, func(a string) bool { return strings.EqualFold(a, v.(string)) }); i >= 0 {
			return allowed[i], nil
		}
		return nil, []string{fmt.Sprintf("%s must be one of %s", place, strings.Join(allowed, ", "))}
	}
	if object, ok := v.(map[string]any); ok && schema["properties"] != nil {
		return fit(schema, object, place+".")
	}
	list, ok := v.([]any)
	items, itemsKnown := schema["items"].(map[string]any)
	if !ok || !itemsKnown {
		return v, nil
	}
	var problems []string
	fitted := make([]any, len(list))
	for i, item := range list {
		var wrong []string
		fitted[i], wrong = fitValue(items, item, fmt.Sprintf("%s[%d]", place, i+1))
		problems = append(problems, wrong...)
	}
	return fitted, problems
}

// names is a list of strings, made in Go or read from JSON.
func names(v any) []string {
	switch list := v.(type) {
	case []string:
		return list
	case []any:
		var out []string
		for _, e := range list {
			if s, ok := e.(string); ok {
				out = append(out, s)
			}
		}
		return out
	}
	return nil
}

// find returns an argument by its name, or by another name that is not itself a
// parameter.
func find(args map[string]any, name string, properties map[string]any) (any, bool) {
	if v, ok := args[name]; ok {
		return v, true
	}
	for _, other := range otherNames[name] {
		if _, taken := properties[other]; taken {
			continue
		}
		if v, ok := args[other]; ok {
			return v, true
		}
	}
	return nil, false
}

// usage shows the arguments of a tool, such as {"path": string, "limit"?: integer}.
func usage(schema map[string]any) string {
	properties, _ := schema["properties"].(map[string]any)
	required := names(schema["required"])
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		mark := "?"
		if slices.Contains(required, name) {
			mark = ""
		}
		property, _ := properties[name].(map[string]any)
		kind := fmt.Sprint(property["type"])
		if items, ok := property["items"].(map[string]any); ok && items["properties"] != nil {
			kind = "[" + usage(items) + "]"
		}
		parts = append(parts, fmt.Sprintf("%q%s: %s", name, mark, kind))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// coerce converts a value to a JSON type if nothing is lost by it.
func coerce(v any, typ string) (any, bool) {
	switch typ {
	case "string":
		return coerceString(v)
	case "integer", "number":
		f, ok := v.(float64)
		if s, isText := v.(string); isText {
			var err error
			f, err = strconv.ParseFloat(strings.TrimSpace(s), 64)
			ok = err == nil
		}
		const most = 1 << 53 // beyond it a float64 knows no neighbours
		if typ == "integer" && (f != math.Trunc(f) || math.Abs(f) > most) || math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, false
		}
		return f, ok
	case "boolean":
		if s, ok := v.(string); ok {
			b, err := strconv.ParseBool(strings.ToLower(strings.TrimSpace(s)))
			return b, err == nil
		}
		_, ok := v.(bool)
		return v, ok
	case "array":
		return coerceList(v)
	case "object":
		return coerceObject(v)
	}
	return v, true
}

func coerceString(v any) (any, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return nil, false
}

// coerceList also takes a list written as JSON, and one object for a list of one.
func coerceList(v any) (any, bool) {
	switch v := v.(type) {
	case []any:
		return v, true
	case map[string]any:
		return []any{v}, true
	case string:
		var list []any
		if json.Unmarshal([]byte(v), &list) == nil && list != nil {
			return list, true
		}
		if object, ok := coerceObject(v); ok {
			return []any{object}, true
		}
	}
	return nil, false
}

func coerceObject(v any) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		return v, true
	case string:
		var object map[string]any
		err := json.Unmarshal([]byte(v), &object)
		return object, err == nil && object != nil
	}
	return nil, false
}
