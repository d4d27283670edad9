//go:build instruments

package attacks

import (
	"cmp"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// row is one attack and the expected result for each tier.
type row struct {
	name   string
	script string // run with sh in the workspace; status 0 means success
	after  string // what the user does afterwards, in addition to the day's work
	// touches are the names, below the world, that only this attack changes.
	touches string
	// leaves are other names that it changes and that start nothing.
	leaves string
	// reach means that status 0 alone is a violation.
	reach bool
	// told is a part of the line that uwf must print about it.
	told string
	// The expected result: "held" (it failed), "undone" (it succeeded, and nothing remains), or "open: " and
	// what remains; "" accepts held or undone. landlockRoot applies to root where it differs.
	landlock, landlockRoot string
	box                    string
	only                   string // the only tier that has the target of the attack
	unseen                 bool   // it achieves nothing even without a sandbox
}

// group is a list of rows that don't interfere, so they run in one command.
type group struct {
	name string
	rows []row
	each bool // run every row in a separate world
}

func (r row) id() string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			return c
		}
		return '-'
	}, strings.ToLower(r.name))
}

func (r row) expected(tier string, u user) string {
	switch {
	case tier == "box":
		return r.box
	case u.name == "root" && r.landlockRoot != "":
		return r.landlockRoot
	default:
		return r.landlock
	}
}

func TestAttacks(t *testing.T) {
	t.Parallel()
	tier := tier(t)
	names := map[string]bool{}
	for _, g := range groups() {
		for _, r := range g.rows {
			if names[r.id()] {
				t.Errorf("two rows are called %s", r.name)
			}
			names[r.id()] = true
		}
	}
	for i, u := range users() {
		for _, g := range groups() {
			rows := slices.DeleteFunc(g.rows, func(r row) bool { return r.only != "" && r.only != tier })
			for _, by := range []way{commandRole, runCommand} {
				if !g.each {
					t.Run(fmt.Sprint(u.name, "/", by, "/", g.name), func(t *testing.T) {
						t.Parallel()
						attack(t, tier, u, by, rows)
					})
				}
			}
			for j, r := range rows {
				if by := []way{commandRole, runCommand}[(i+j)%2]; g.each {
					t.Run(fmt.Sprint(u.name, "/", by, "/", g.name, "/", r.id()), func(t *testing.T) {
						t.Parallel()
						attack(t, tier, u, by, []row{r})
					})
				}
			}
		}
	}
}

// attack runs rows in one command and compares the result of each with the expected one.
func attack(t *testing.T, tier string, u user, by way, rows []row) {
	found, said := try(t, tier, u, by, rows, "")
	for _, r := range rows {
		got, want := found[r.name], r.expected(tier, u)
		if got != want && (want != "" || got != "held" && got != "undone") {
			t.Errorf("%s: %s, but should be %s", r.name, got, cmp.Or(want, "held or undone"))
		}
		if r.told != "" && got != "held" && !strings.Contains(said.stderr+said.stdout, r.told) {
			t.Errorf("%s: uwf does not say %q", r.name, r.told)
		}
	}
	if found[""] != "" {
		t.Errorf("changed, by which attack nobody knows: %s", found[""])
	}
	if t.Failed() {
		t.Logf("uwf: exit %d\n%s%s", said.status, said.stdout, said.stderr)
	}
}

// try runs rows in one command with additional settings, and returns the result of each. The key "" contains
// other changes.
func try(t *testing.T, tier string, u user, by way, rows []row, settings string) (map[string]string, ran) {
	t.Helper()
	w := newWorld(t, u)
	for _, r := range rows {
		dir := filepath.Join(w.dir, "outside", r.id())
		script := `mkdir -p ` + dir + `/d; cd ` + dir + `; echo mine > f; touch -d 2001-01-01 f`
		if out, err := w.command(t.Context(), u, w.dir, script).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	before := w.snapshot(t)
	said := w.confined(t, by, w.script(tier, rows), settings)
	left := w.left(t)
	w.killLeft(t)
	if out, err := w.command(t.Context(), user{uid: -1}, w.dir, `cp -r home/src/*/got results`).CombinedOutput(); err != nil {
		t.Fatalf("what the attacks found: %v: %s\n%s", err, out, said.stderr)
	}
	if results, err := filepath.Glob(w.dir + "/results/*.rc"); err != nil || len(results) == 0 {
		t.Fatalf("no attack ran: exit %d\n%s%s", said.status, said.stdout, said.stderr)
	}
	differs := changed(before, w.snapshot(t))
	for _, r := range rows {
		if r.after != "" {
			w.outside(t, `F="`+w.dir+"/fire "+r.id()+`"; DIR=`+w.dir+`; OUT=`+w.dir+"/outside/"+r.id()+"\n"+r.after)
		}
	}
	if len(rows) > 1 {
		w.outside(t, `set -- "$HOME/src/linked" "$HOME/src/other" "$HOME/src/lib"`+"\n"+day)
		w.outside(t, everywhere)
	} else {
		w.outside(t, `set -- "$HOME/src/linked"`+"\n"+day)
	}
	found, explained := map[string]string{}, map[string]bool{}
	for _, r := range rows {
		evidence, status := w.evidence(t, r, left, differs, explained)
		switch {
		case len(evidence) > 0:
			found[r.name] = "open: " + strings.Join(evidence, ", ")
		case status == "0" && r.reach:
			found[r.name] = "open: reached"
		case status == "0":
			found[r.name] = "undone"
		case status == "":
			t.Errorf("%s did not get its turn", r.name)
		default:
			found[r.name] = "held"
		}
	}
	for _, name := range differs {
		if original, aside := strings.CutSuffix(name, ".uwf-new"); aside && strings.HasPrefix(original, "home/src/repo/") {
			continue // files planted under that name are there, where nothing obeys them
		}
		ordinary := strings.HasPrefix(name, "home/src/repo") && !strings.HasPrefix(name, "home/src/repo/.git/")
		if !explained[name] && !ordinary {
			found[""] += name + " "
		}
	}
	return found, said
}

// A judge that detects nothing would report every attack as held. So without a sandbox, every attack that is
// harmless to the machine must be detected.
func TestJudgeSeesWhatNothingHolds(t *testing.T) {
	t.Parallel()
	u := users()[len(users())-1]
	for _, g := range groups() {
		if g.each || g.name == "machine" || g.name == "kernel" {
			continue
		}
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			rows := slices.DeleteFunc(g.rows, func(r row) bool { return r.only != "" })
			found, said := try(t, "landlock", u, commandRole, rows, "commands: { sandbox: { mode: none } }\n")
			for _, r := range rows {
				if seen := strings.HasPrefix(found[r.name], "open: "); seen == r.unseen {
					t.Errorf("%s: %s", r.name, found[r.name])
				}
			}
			if t.Failed() {
				t.Logf("uwf: exit %d\n%s%s", said.status, said.stdout, said.stderr)
			}
		})
	}
}

// evidence returns what an attack has achieved, seen from outside, and what its shell printed.
func (w *world) evidence(t *testing.T, r row, left map[int]string, differs []string, explained map[string]bool) (found []string, status string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(w.dir, "fired", r.id())); err == nil {
		found = append(found, "runs")
	}
	touched, harmless := false, strings.Fields(r.leaves)
	places := append(strings.Fields(r.touches), "outside/"+r.id())
	for _, name := range differs {
		if strings.HasPrefix(name, "home/src/repo/") && strings.HasSuffix(name, ".uwf-new") {
			continue // nothing obeys it
		}
		if slices.ContainsFunc(places, func(place string) bool { return name == place || strings.HasPrefix(name, place+"/") }) {
			touched, explained[name] = true, true
		} else if slices.ContainsFunc(harmless, func(place string) bool { return name == place || strings.HasPrefix(name, place+"/") }) {
			explained[name] = true
		}
	}
	if touched {
		found = append(found, "changed")
	}
	results := filepath.Join(w.dir, "results")
	if text, err := os.ReadFile(filepath.Join(results, r.id()+".got")); err == nil && strings.Contains(string(text), "canary-") {
		found = append(found, "read")
	}
	for _, line := range left {
		if strings.Contains(line, "stay "+r.id()+" ") {
			found = append(found, "alive")
			break
		}
	}
	text, _ := os.ReadFile(filepath.Join(results, r.id()+".rc"))
	return found, strings.TrimSpace(string(text))
}

// script returns the command's script: each attack in a separate shell.
func (w *world) script(tier string, rows []row) string {
	var s strings.Builder
	fmt.Fprintf(&s, "TIER=%s DIR=%s W=%s H=%s A=%s/tools/attacker\n", tier, w.dir, w.repo, w.home, w.repo)
	for name, value := range w.host {
		fmt.Fprintf(&s, "%s=%s\n", name, value)
	}
	s.WriteString(`hook() { printf '#!/bin/sh\n%s\n' "$F" > "$1" && chmod 755 "$1"; }
`)
	for _, r := range rows {
		fmt.Fprintf(&s, "ID=%s F='%s/fire %s' OUT=%s/outside/%s GOT=%s/got/%s.got\n", r.id(), w.dir, r.id(), w.dir, r.id(), w.repo, r.id())
		fmt.Fprintf(&s, "( cd \"$W\" || exit 97\n%s\n) >/dev/null 2>\"$W/got/$ID.err\" </dev/null; echo $? > \"$W/got/$ID.rc\"\n", r.script)
	}
	s.WriteString("true\n")
	return s.String()
}

// day contains a user's normal actions after a step: anything that git starts then runs as the user.
//
//go:embed testdata/day.sh
var day string

// everywhere is a user who looks into each directory, with a prompt that runs git.
//
//go:embed testdata/everywhere.sh
var everywhere string
