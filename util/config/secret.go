package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/util/secret"
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
			if secret.Named(name) && isLiteral(value) {
				found = append(found, fmt.Sprintf("agents.%s.env.%s", alias, name))
			}
		}
	}
	if hook := entries(doc.Root.Get("notify"))["webhook"]; hook != nil && isLiteral(hook.Get("secret")) {
		found = append(found, "notify.webhook.secret")
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
