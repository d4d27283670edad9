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
	"limit":      {"max_lines", "line_count"},
}

// normalize makes arguments fit a tool's schema where the model's intention is
// plain: other names of a parameter, numbers and booleans written as strings,
// lists written as JSON. Unknown arguments are dropped. What stays wrong is an
// error that names every problem.
func normalize(spec Spec, args map[string]any) (map[string]any, error) {
	properties, _ := spec.Parameters["properties"].(map[string]any)
	out := map[string]any{}
	var problems []string
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		v, ok := find(args, name, properties)
		if !ok || v == nil {
			continue
		}
		schema, _ := properties[name].(map[string]any)
		typ, _ := schema["type"].(string)
		v, ok = coerce(v, typ)
		if !ok {
			problems = append(problems, fmt.Sprintf("%s must be of type %s", name, typ))
			continue
		}
		out[name] = v
	}
	required, _ := spec.Parameters["required"].([]string)
	for _, name := range required {
		if _, ok := out[name]; !ok && !slices.ContainsFunc(problems, func(p string) bool { return strings.HasPrefix(p, name+" ") }) {
			problems = append(problems, name+" is missing")
		}
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("%s: %s. Call it again with {%s}", spec.Name, strings.Join(problems, "; "), usage(properties, required))
	}
	return out, nil
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

// usage shows the arguments of a tool, such as `"path": string, "limit"?: integer`.
func usage(properties map[string]any, required []string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		mark := "?"
		if slices.Contains(required, name) {
			mark = ""
		}
		schema, _ := properties[name].(map[string]any)
		parts = append(parts, fmt.Sprintf("%q%s: %v", name, mark, schema["type"]))
	}
	return strings.Join(parts, ", ")
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
		if typ == "integer" && f != math.Trunc(f) || math.IsNaN(f) || math.IsInf(f, 0) {
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
		if s, ok := v.(string); ok {
			var list []any
			err := json.Unmarshal([]byte(s), &list)
			return list, err == nil
		}
		_, ok := v.([]any)
		return v, ok
	case "object":
		_, ok := v.(map[string]any)
		return v, ok
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
