package config

import (
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/util/env"
)

// expand replaces ${NAME} by the variable's value and $$ by a dollar sign. It
// returns the first variable that is not set, or what is wrong; neither holds
// anything of the value.
func expand(s string, e env.Env) (text, unset, msg string) {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, "$")
		b.WriteString(before)
		if !found {
			return b.String(), unset, ""
		}
		switch {
		case strings.HasPrefix(after, "$"):
			b.WriteByte('$')
			s = after[1:]
		case strings.HasPrefix(after, "{"):
			name, rest, closed := strings.Cut(after[1:], "}")
			if !closed || !isVariable(name) {
				return "", "", "has a ${ that is not the beginning of ${NAME}"
			}
			value := e.Get(name)
			if value == "" && unset == "" {
				unset = name
			}
			b.WriteString(value)
			s = rest
		default:
			b.WriteByte('$')
			s = after
		}
	}
}

// variables lists the variables that a value asks for.
func variables(s string) []string {
	var names []string
	for _, part := range strings.Split(strings.ReplaceAll(s, "$$", ""), "${")[1:] {
		name, _, _ := strings.Cut(part, "}")
		names = append(names, name)
	}
	return names
}

// hasVariable reports whether a value is only known when it is used.
func hasVariable(s string) bool {
	return len(variables(s)) > 0
}

// isVariable reports whether s can be the name of an environment variable.
func isVariable(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// user expands values that are about to be used and keeps the first error.
type user struct {
	env env.Env
	err error
}

// value is the expanded value of the key at path.
func (u *user) value(s, path string) string {
	text, unset, msg := expand(s, u.env)
	switch {
	case u.err != nil:
	case msg != "":
		u.err = invalid(nil, "%s in config.yaml %s", path, msg)
	case unset != "":
		u.err = notSet(unset, path)
	}
	return text
}

func notSet(variable, path string) error {
	return invalid([]string{fmt.Sprintf("export %s=…", variable), "or add the line " + variable + "='…' to the file .env beside config.yaml"},
		"the environment variable %s is not set; %s in config.yaml asks for it", variable, path)
}
