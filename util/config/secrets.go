package config

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/internal/thirdparty/lean/godotenv"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/secret"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// secretsOf returns the secrets in the variables of e and of .env, and those in a config unless it is nil.
func secretsOf(e env.Env, dotEnv map[string]string, config *yamldoc.Doc) []string {
	var found []string
	for _, kv := range e.Environ {
		name, value, _ := strings.Cut(kv, "=")
		found = append(found, secret.OfVariable(name, value)...)
	}
	for _, name := range keys(dotEnv) {
		found = append(found, secret.OfDotEnv(name, dotEnv[name])...)
		if e.Get(name) == "" {
			e = e.With(name, dotEnv[name])
		}
	}
	if config == nil {
		return found
	}
	return append(found, written(config.Root, e)...)
}

// written returns the secrets that a config contains or references.
func written(root *yamldoc.Node, e env.Env) (found []string) {
	value := func(n *yamldoc.Node) string {
		if n == nil {
			return ""
		}
		text, _, _ := expand(n.Text, e)
		return text
	}
	for _, p := range entries(root.Get("providers")) {
		found = append(found, value(p.Get("apiKey")), e.Get(value(p.Get("apiKeyEnv"))))
		found = append(found, secret.OfVariable("", value(p.Get("baseUrl")))...)
	}
	for _, a := range entries(root.Get("agents")) {
		for name, v := range entries(a.Get("env")) {
			found = append(found, secret.OfVariable(name, value(v))...)
		}
	}
	if commands := root.Get("commands"); commands != nil {
		for _, names := range entries(commands.Get("passEnv")) {
			for _, name := range names.Items {
				found = append(found, e.Get(value(name)))
			}
		}
	}
	if hook := entries(root.Get("notify"))["webhook"]; hook != nil {
		found = append(found, value(hook.Get("url")), value(hook.Get("secret")))
	}
	return found
}

// MaskKey returns the displayable part of a key: its last four characters if the rest is long enough to stay
// secret.
func MaskKey(key string) string {
	const enough, shown = 20, 4
	switch {
	case key == "":
		return ""
	case len(key) < enough:
		return "***"
	}
	return "***" + key[len(key)-shown:]
}

// literalSecrets returns the sorted locations in a config.yaml of literal secrets, as opposed to ${NAME}.
func literalSecrets(src []byte) []string {
	doc, err := yamldoc.Parse(src, yamldoc.Bounds{})
	if err != nil {
		return nil // Load reports it
	}
	var found []string
	var search func(n *yamldoc.Node, at Key)
	search = func(n *yamldoc.Node, at Key) {
		if at.Secret() && isLiteral(n) {
			found = append(found, at.String())
		}
		for key, value := range entries(n) {
			search(value, Key{Path: append(slices.Clone(at.Path), key)})
		}
	}
	search(doc.Root, Key{})
	slices.Sort(found)
	return found
}

func isLiteral(n *yamldoc.Node) bool {
	return n != nil && n.Text != "" && !strings.Contains(n.Text, "${")
}

// entries returns the entries of a mapping, nil for other nodes.
func entries(n *yamldoc.Node) map[string]*yamldoc.Node {
	m := map[string]*yamldoc.Node{}
	if n == nil {
		return m
	}
	for _, e := range n.Entries {
		m[e.Text] = e.Value
	}
	return m
}

// withVariables returns e with the variables of .env that e doesn't set, unless they couldn't be read.
func withVariables(e env.Env, vars map[string]string, err error) (env.Env, error) {
	if err != nil {
		return e, err
	}
	for _, name := range keys(vars) {
		if vars[name] != "" && e.Get(name) == "" {
			e = e.With(name, vars[name])
		}
	}
	return e, nil
}

// Handed returns a minimal environment for a program: given, and from the variables that [Files.WithDotEnv] added
// in with, those that aren't secret, proxies, and those listed in names; a name that ends with * is a prefix.
func Handed(given []string, with env.Env, names []string) []string {
	handed := slices.Clone(given)
	for _, kv := range with.Environ[len(given):] {
		name, value, _ := strings.Cut(kv, "=")
		guarded := secret.Guarded(name, value) || len(secret.OfDotEnv(name, value)) > 0
		if !guarded || strings.HasSuffix(strings.ToUpper(name), "_PROXY") || slices.ContainsFunc(names,
			func(pattern string) bool {
				prefix, some := strings.CutSuffix(pattern, "*")
				return name == pattern || some && strings.HasPrefix(name, prefix)
			}) {
			handed = append(handed, kv)
		}
	}
	return handed
}

// variablesIn returns the variables of a .env file, given its text or why it couldn't be read; a missing file
// has none.
func variablesIn(path string, src []byte, err error) (map[string]string, error) {
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read environment file: %w", err)
	}
	return parseDotEnv(path, strings.TrimPrefix(string(src), "\ufeff"))
}

func parseDotEnv(path, src string) (map[string]string, error) {
	if strings.Contains(src, "\x00") {
		return nil, invalid(nil, "%s must have lines NAME=value", path)
	}
	vars, err := readDotEnv(src)
	if err != nil {
		return nil, &protocol.Error{
			Code:    protocol.CodeInvalid,
			Message: fmt.Sprintf("%s:%d: invalid line", path, badLine(src)),
			Err:     err,
			Hints:   []string{"write NAME=value, with special characters in single quotes"},
		}
	}
	if name := eaten(src, vars); name != "" {
		return nil, invalid([]string{"put the value in single quotes: " + name + "='…'"},
			"%s: the value of %s uses a $NAME that the file does not define", path, name)
	}
	return vars, nil
}

var errDotEnv = errors.New("want lines NAME=value")

// readDotEnv replaces the library's error, which quotes the rest of the file, including secrets. It adds a
// final newline, without which the library would accept a line without '=' as a variable without a name.
func readDotEnv(src string) (map[string]string, error) {
	vars, err := godotenv.Unmarshal(src + "\n")
	if _, nameless := vars[""]; err != nil || nameless {
		return nil, errDotEnv
	}
	return vars, nil
}

// badLine returns the line after the longest valid beginning.
func badLine(src string) int {
	lines := strings.Split(src, "\n")
	for n := len(lines) - 1; n > 0; n-- {
		if _, err := readDotEnv(strings.Join(lines[:n], "\n")); err == nil {
			return n + 1
		}
	}
	return 1
}

// eaten returns a variable whose value has lost a part: unless in single quotes, the library expands $NAME to
// a variable of the same file, or to nothing, so that "p$1q" becomes "pq".
func eaten(src string, vars map[string]string) string {
	const placeholder = "\ue000" // without a dollar sign nothing is expanded
	raw, err := readDotEnv(strings.ReplaceAll(src, "$", placeholder))
	if err != nil {
		return ""
	}
	reference := regexp.MustCompile(`\\?` + placeholder + `\{?([A-Z0-9_]+)`)
	for _, name := range keys(vars) {
		if strings.ReplaceAll(raw[name], placeholder, "$") == vars[name] {
			continue
		}
		for _, match := range reference.FindAllStringSubmatch(raw[name], -1) {
			_, defined := vars[match[1]]
			if !defined && match[0][0] != '\\' {
				return name
			}
		}
	}
	return ""
}

// expand replaces ${NAME} with the variable's value and $$ with a dollar sign. It returns the first unset
// variable, or an error message; neither contains any part of the value.
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
				return "", "", "has a ${ that does not start a ${NAME}"
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

// variables returns the variables in a value.
func variables(s string) []string {
	var names []string
	for _, part := range strings.Split(strings.ReplaceAll(s, "$$", ""), "${")[1:] {
		name, _, _ := strings.Cut(part, "}")
		names = append(names, name)
	}
	return names
}

// hasVariable reports whether a value is expanded on use.
func hasVariable(s string) bool {
	return len(variables(s)) > 0
}

// isVariable reports whether s is a valid name of an environment variable.
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

// user expands values on use and keeps the first error.
type user struct {
	env env.Env
	err error
}

// value returns the expanded value of the key at path.
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
	return invalid([]string{fmt.Sprintf("export %s=…", variable),
		"or add " + variable + "='…' to .env in the directory of config.yaml"},
		"environment variable %s is not set; %s in config.yaml needs it", variable, path)
}
