package corpus

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// compared compares two JSON values and returns the lines that would list the differences.
func compared(t *testing.T, r *rules, values ...string) []string {
	t.Helper()
	c := &comparison{home: "h", command: "uwf x", rules: r, named: map[string]string{}}
	for i := 0; i < len(values); i += 2 {
		var pair [2]any
		for k := range pair {
			d := json.NewDecoder(strings.NewReader(values[i+k]))
			d.UseNumber()
			if err := d.Decode(&pair[k]); err != nil {
				t.Fatal(err)
			}
		}
		c.value("", pair[0], pair[1])
	}
	var lines []string
	for _, d := range c.found {
		lines = append(lines, d.line())
	}
	return lines
}

// A comparison that finds nothing proves nothing.
func TestWhatDiffersIsFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		values []string // pairs of old and new values
		want   string
	}{
		"the same":              {[]string{`{"a":[1,"x",null,true]}`, `{"a":[1,"x",null,true]}`}, ""},
		"a number":              {[]string{`{"steps":2}`, `{"steps":3}`}, "at | h | uwf x | .steps | 2 | 3"},
		"a status":              {[]string{`[{"status":"idle"}]`, `[{"status":"failed"}]`}, `at | h | uwf x | [0].status | "idle" | "failed"`},
		"an order":              {[]string{`["a","b"]`, `["b","a"]`}, `at | h | uwf x | [0] | "a" | "b"; at | h | uwf x | [1] | "b" | "a"`},
		"a list that is longer": {[]string{`[1]`, `[1,2]`}, "at | h | uwf x |  | [1] | [1,2]"},
		"another type":          {[]string{`{"a":{}}`, `{"a":[]}`}, "at | h | uwf x | .a | {} | []"},
		"a number as text":      {[]string{`{"a":1}`, `{"a":"1"}`}, `at | h | uwf x | .a | 1 | "1"`},
		"a key that is gone":    {[]string{`{"a":1,"b":2}`, `{"a":1}`}, "at | h | uwf x | .b | 2 | -"},
		"a key that is new":     {[]string{`{"a":1}`, `{"a":1,"b":2}`}, "at | h | uwf x | .b | - | 2"},
		"a line":                {[]string{`{"t":"a\nb"}`, `{"t":"a\nc"}`}, `at | h | uwf x | .t:2 | "b" | "c"`},
		"a hash":                {[]string{`"‹hash 1›"`, `"8HV07CK8Y116A"`}, ""},
		"no hash":               {[]string{`"‹hash 1›"`, `"none"`}, `at | h | uwf x |  | "‹hash 1›" | "none"`},
		"one thing twice":       {[]string{`["‹hash 1›","‹hash 1›"]`, `["8HV07CK8Y116A","8HV07CK8Y116A"]`}, ""},
		"two things in the place of one": {[]string{`"‹hash 1›"`, `"8HV07CK8Y116A"`, `"‹hash 1›"`, `"9HV07CK8Y116A"`},
			`at | h | uwf x |  | "‹hash 1›" | "9HV07CK8Y116A"`},
		"a time":             {[]string{`{"a":"‹time›"}`, `{"a":1795871367841}`}, ""},
		"no time":            {[]string{`{"a":"‹time›"}`, `{"a":0}`}, `at | h | uwf x | .a | "‹time›" | 0`},
		"a time in a text":   {[]string{`"at ‹time›, took ‹took›."`, `"at 2026-11-28T13:00:00Z, took 12ms."`}, ""},
		"words around times": {[]string{`"at ‹time›."`, `"in 2026-11-28."`}, `at | h | uwf x |  | "at ‹time›." | "in 2026-11-28."`},
		"a command of today": {[]string{`"uwf tick"`, `"uwf run-due"`}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := parseRules("reason: x\ncommand | tick | run-due\n")
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(compared(t, r, c.values...), "; "); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestDifferencesAreListed(t *testing.T) {
	t.Parallel()
	r, err := parseRules(`# A comment.
reason: issue 30
value | status | "parked" | "rate-limited"
key | linkEnds | linkExpiresAt
added | labels
removed | background
at | * | uwf x | .n | 1 | 2
less | h | uwf x | .threads | 1
more | h | uwf x | .pruned | 0

reason: issue 31
gone | uwf man
command | thread tell | thread message
file | home/config.yaml | onLimit | onRateLimit
value | status | "never" | "needed"
`)
	if err != nil {
		t.Fatal(err)
	}
	before := `{"status":"parked","list":[{"linkEnds":1}],"background":null,"n":1}`
	today := `{"status":"rate-limited","list":[{"linkExpiresAt":1}],"labels":[],"n":2}`
	if got := compared(t, r, before, today); len(got) > 0 {
		t.Errorf("found %s", got)
	}
	if got := compared(t, r, `{"threads":["a","b"],"pruned":["a"]}`, `{"threads":["a"],"pruned":["b","a"]}`); len(got) > 0 {
		t.Errorf("an element that is gone, one that is new: found %s", got)
	}
	if got := compared(t, r, `{"threads":["b","a"]}`, `{"threads":["b","c"]}`, `{"pruned":["a"]}`, `{"pruned":["b"]}`); len(got) != 2 {
		t.Errorf("another element: found %s", got)
	}
	if got := compared(t, r, `{"state":"parked","n":1}`, `{"state":"rate-limited","n":3}`); len(got) != 2 {
		t.Errorf("another key, another value: found %s", got)
	}
	if line, ok := r.command("uwf thread tell @ x --json"); line != "uwf thread message @ x --json" || !ok {
		t.Errorf("the command is %s", line)
	}
	if _, ok := r.command("uwf man --json"); ok {
		t.Error("a command that is gone is typed")
	}
	if _, ok := r.command("uwf manage"); !ok {
		t.Error("a command that begins alike is not typed")
	}
	if text := r.file("/x/home/config.yaml", "onLimit: wait"); text != "onRateLimit: wait" {
		t.Errorf("the file is %s", text)
	}
	if got := r.unused(); len(got) != 1 || !strings.Contains(got[0], `"never"`) {
		t.Errorf("not needed: %s", got)
	}
}

func TestDifferencesWithoutReason(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"added | labels\n":                         "differences:1: a block of differences begins with 'reason: '",
		"reason: x\nadded | a\n\nadded | b\n":      "differences:4: a block",
		"reason: TODO\nadded | a\n":                "differences:1: write the reason",
		"reason: x\nvalue | status | \"idle\"\n":   "differences:2: value has 3 fields",
		"reason: x\nchanged | status | 1 | 2\n":    "differences:2: there is no kind",
		"reason: x\nat | a | b | .c | 1 | 2 | 3\n": "differences:2: at has 5 fields",
	} {
		if _, err := parseRules(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestWordsOfCommands(t *testing.T) {
	t.Parallel()
	got, err := split(`sh -c 'a "b" $0' "c d"  e ''`)
	if want := []string{"sh", "-c", `a "b" $0`, "c d", "e", ""}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := split("a 'b"); err == nil {
		t.Error("an open quote")
	}
}
