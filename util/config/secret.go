package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// MaskKey is what may be shown of a key: its last four characters if it is long
// enough to keep the rest a secret.
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

// Masked is a copy of a config that may be shown: keys of providers and
// variables of agents that look like secrets are masked.
func Masked(c protocol.Config) protocol.Config {
	c.Providers, c.Agents = maps.Clone(c.Providers), maps.Clone(c.Agents)
	for name, p := range c.Providers {
		p.APIKey = MaskKey(p.APIKey)
		c.Providers[name] = p
	}
	for alias, a := range c.Agents {
		a.Env = maps.Clone(a.Env)
		for name, value := range a.Env {
			if isSecretName(name) {
				a.Env[name] = MaskKey(value)
			}
		}
		c.Agents[alias] = a
	}
	return c
}

func isSecretName(name string) bool {
	return regexp.MustCompile(`(?i)key|token|secret|passw|credential|auth`).MatchString(name)
}

// literalSecrets lists the places in a config.yaml that hold a secret as such
// and not as ${NAME}, sorted.
func literalSecrets(src []byte) []string {
	doc, err := yamldoc.Parse(src, yamldoc.Bounds{})
	if err != nil {
		return nil // Load reports it
	}
	var found []string
	for name, p := range entries(doc.Root.Get("providers")) {
		if isLiteral(p.Get("apiKey")) {
			found = append(found, fmt.Sprintf("providers.%s.apiKey", name))
		}
	}
	for alias, a := range entries(doc.Root.Get("agents")) {
		for name, value := range entries(a.Get("env")) {
			if isSecretName(name) && isLiteral(value) {
				found = append(found, fmt.Sprintf("agents.%s.env.%s", alias, name))
			}
		}
	}
	slices.Sort(found)
	return found
}

func isLiteral(n *yamldoc.Node) bool {
	return n != nil && n.Text != "" && !strings.Contains(n.Text, "${")
}

// entries are the entries of a mapping; a node that is none has none.
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
