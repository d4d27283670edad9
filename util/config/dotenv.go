package config

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/joho/godotenv"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/secret"
)

// maxDotEnv bounds a .env file, in bytes.
const maxDotEnv = 1 << 20

// LoadDotEnv returns e with the variables of a .env file that e does not set; an
// empty value counts as not set. A missing file changes nothing. Errors hold
// nothing of the file but the names of variables.
func LoadDotEnv(path string, e env.Env) (env.Env, error) {
	vars, err := readDotEnvFile(path)
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

// Handed is the environment for a program that gets only what it needs: given,
// and of what [LoadDotEnv] has added to it in with, all that is no secret, proxies,
// and what names lists; a name that ends with * is a prefix.
func Handed(given []string, with env.Env, names []string) []string {
	handed := slices.Clone(given)
	for _, kv := range with.Environ[len(given):] {
		name, value, _ := strings.Cut(kv, "=")
		guarded := secret.Guarded(name, value) || len(secret.OfDotEnv(name, value)) > 0
		if !guarded || strings.HasSuffix(strings.ToUpper(name), "_PROXY") || slices.ContainsFunc(names, func(pattern string) bool {
			prefix, some := strings.CutSuffix(pattern, "*")
			return name == pattern || some && strings.HasPrefix(name, prefix)
		}) {
			handed = append(handed, kv)
		}
	}
	return handed
}

// readDotEnvFile reads the variables of a .env file; one that is missing has none.
func readDotEnvFile(path string) (map[string]string, error) {
	src, err := careful.ReadFile(path, maxDotEnv, careful.Follow)
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
		return nil, invalid(nil, "%s is not a file of lines NAME=value", path)
	}
	vars, err := readDotEnv(src)
	if err != nil {
		return nil, &protocol.Error{
			Code:    protocol.CodeInvalid,
			Message: fmt.Sprintf("%s:%d: this line cannot be read", path, badLine(src)),
			Err:     err,
			Hints:   []string{"every line is NAME=value; put values with special characters into single quotes"},
		}
	}
	if name := eaten(src, vars); name != "" {
		return nil, invalid([]string{"put the value into single quotes: " + name + "='…'"},
			"%s: the value of %s contains a $ before a name that the file does not define", path, name)
	}
	return vars, nil
}

var errDotEnv = errors.New("not a file of lines NAME=value")

// readDotEnv hides the library's error, which quotes the rest of the file,
// secrets and all. Without a line end it would take a line without '=' for the
// value of a variable without a name.
func readDotEnv(src string) (map[string]string, error) {
	vars, err := godotenv.Unmarshal(src + "\n")
	if _, nameless := vars[""]; err != nil || nameless {
		return nil, errDotEnv
	}
	return vars, nil
}

// badLine finds the line after the longest beginning that can be read.
func badLine(src string) int {
	lines := strings.Split(src, "\n")
	for n := len(lines) - 1; n > 0; n-- {
		if _, err := readDotEnv(strings.Join(lines[:n], "\n")); err == nil {
			return n + 1
		}
	}
	return 1
}

// eaten returns a variable whose value has lost a piece: in values without
// single quotes the library takes $NAME for a variable of the same file, and
// drops it if there is none, so that "p$1q" becomes "pq".
func eaten(src string, vars map[string]string) string {
	const stand = "\ue000" // nothing is expanded without a dollar sign
	raw, err := readDotEnv(strings.ReplaceAll(src, "$", stand))
	if err != nil {
		return ""
	}
	reference := regexp.MustCompile(`\\?` + stand + `\{?([A-Z0-9_]+)`)
	for _, name := range keys(vars) {
		if strings.ReplaceAll(raw[name], stand, "$") == vars[name] {
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
