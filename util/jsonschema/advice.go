package jsonschema

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/united-workforce/uwf/util/suggest"
)

// patternProblem says why a pattern is none, "" if it is one.
func patternProblem(pattern string) string {
	if _, err := regexp.Compile(pattern); err != nil {
		why := strings.TrimPrefix(err.Error(), "error parsing regexp: ")
		return fmt.Sprintf("the pattern does not compile: %s (the syntax is RE2: no look-around, no back-references, \\x{e9} instead of \\u00e9)", why)
	}
	return ""
}

// unknown says what to do about a keyword that a schema may not use.
func unknown(name string) string {
	switch name {
	case "$ref", "$recursiveRef", "$dynamicRef":
		return name + " is not allowed: a schema must stand alone; write out here what it refers to"
	case "$defs", "definitions":
		return name + " is not allowed: write each definition out where it is used"
	case "$schema":
		return "$schema is not allowed: every schema is read as draft-07; remove it"
	case "$id", "id", "$anchor":
		return name + " is not allowed: a schema is named by its hash; remove it"
	case "prefixItems", "additionalItems":
		return name + " is not supported; use an object with named properties, or items with one schema for all"
	case "nullable":
		return `nullable is not a keyword of JSON Schema; write {"type": ["string", "null"]}`
	}
	return fmt.Sprintf("the keyword %s is not supported%s", show(name), didYouMean(name, keywordNames()))
}

func didYouMean(word string, candidates []string) string {
	near := suggest.Nearest(word, candidates, 1)
	if word == "" || len(near) == 0 {
		return ""
	}
	return "; did you mean " + show(near[0]) + "?"
}
