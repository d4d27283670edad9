//go:build instruments

package attacks

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestPromises compares docs/security.md with the attacks: it has a line for each group with the results of
// both tiers, and each attack is in a group.
func TestPromises(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	kind := func(text string) string {
		word, _, _ := strings.Cut(strings.TrimSpace(text), ":")
		word, _, _ = strings.Cut(word, ",")
		return cmp.Or(word, "held")
	}
	promised, named := map[string]bool{}, []string{}
	for _, g := range groups() {
		named = append(named, "`"+g.name+"`")
	}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 4 || !slices.Contains(named, strings.TrimSpace(cells[3])) {
			continue
		}
		key := strings.Trim(strings.TrimSpace(cells[3]), "`") + " " + kind(cells[1]) + " " + kind(cells[2])
		if promised[key] {
			t.Errorf("docs/security.md has two lines for %s", key)
		}
		promised[key] = true
	}
	tested := map[string]bool{}
	for _, g := range groups() {
		for _, r := range g.rows {
			key := g.name + " " + kind(r.box) + " " + kind(cmp.Or(r.landlockRoot, r.landlock))
			if tested[key] = true; !promised[key] {
				t.Errorf("docs/security.md has no line %q, as which %s is tested", key, r.name)
			}
		}
	}
	for key := range promised {
		if !tested[key] {
			t.Errorf("docs/security.md promises %q, and no attack tests it", key)
		}
	}
}
