package extract

import (
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/util/jsonschema"
)

// checkStandard checks the fields that every answer may have, as far as the
// schema does not know them; those that it knows are its business. An empty
// field counts as absent.
func checkStandard(fields map[string]any, known fieldSet) []jsonschema.Problem {
	var problems []jsonschema.Problem
	for _, name := range []string{"artifacts", "confidence", "next", "scope", "status"} {
		v, ok := fields[name]
		if !ok || v == nil || known.has(name) {
			continue
		}
		if want := wantStandard(name, v); want != "" {
			problems = append(problems, jsonschema.Problem{Path: "/" + name, Message: "must be " + want + ", or be left out"})
		}
	}
	return problems
}

// wantStandard returns what a standard field must be, "" if it is.
func wantStandard(name string, v any) string {
	switch name {
	case "artifacts":
		list, ok := v.([]any)
		return or(!ok || slices.ContainsFunc(list, func(item any) bool { return !isString(item) }), "a list of texts")
	case "confidence":
		f, ok := number(v)
		return or(!ok || f < 0 || f > 1, "a number from 0 to 1")
	}
	return or(!isString(v), "a text")
}

func isString(v any) bool {
	_, ok := v.(string)
	return ok
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

// plainStatus returns the candidate with one of the four standard words as its
// status, if that is what it says in other letters: "DONE" is done.
func plainStatus(candidate map[string]any) (map[string]any, bool) {
	status, _ := candidate["status"].(string)
	word := strings.ToLower(strings.TrimSpace(status))
	switch word {
	case status:
		return nil, false
	case "done", "needs_input", "in_progress", "failed":
		plain := maps.Clone(candidate)
		plain["status"] = word
		return plain, true
	}
	return nil, false
}
