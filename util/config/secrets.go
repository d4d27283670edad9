package config

import (
	"strings"

	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/secret"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// Secrets finds all that must be neither stored nor shown: what .env holds, but
// for plain settings; the keys of providers; and of the agents' variables and
// those of e what is a secret by its name or is a URL with a password. Nothing
// stops it: what cannot be read has no secrets.
func Secrets(configPath, dotEnvPath string, e env.Env) []string {
	var found []string
	for _, kv := range e.Environ {
		name, value, _ := strings.Cut(kv, "=")
		found = append(found, secret.OfVariable(name, value)...)
	}
	vars, _ := readDotEnvFile(dotEnvPath)
	for _, name := range keys(vars) {
		found = append(found, secret.OfDotEnv(name, vars[name])...)
		if e.Get(name) == "" {
			e = e.With(name, vars[name])
		}
	}
	src, err := ReadFile(configPath)
	if err != nil {
		return found
	}
	doc, err := yamldoc.Parse(src, yamldoc.Bounds{})
	if err != nil {
		return found
	}
	return append(found, written(doc.Root, e)...)
}

// written are the secrets that a config names or holds.
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
	if hook := entries(root.Get("notify"))["webhook"]; hook != nil {
		found = append(found, value(hook.Get("url")), value(hook.Get("secret")))
	}
	return found
}
