package corpus

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRecord records the programs' output, for make.sh: it plays each story twice, and values that differ may
// differ in all later runs.
func TestRecord(t *testing.T) {
	if *record == "" {
		t.Skip("make.sh records, once")
	}
	occupy(t)
	install(t)
	homes, err := filepath.Glob("testdata/homes/*.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	for _, archive := range homes {
		name := strings.TrimSuffix(filepath.Base(archive), ".tar.gz")
		if *record == "all" || *record == name {
			t.Run(name, func(t *testing.T) { t.Parallel(); recordHome(t, name) })
		}
	}
}

// told is a command of a story with its result.
type told struct {
	result
	fresh bool // the home is unchanged, so the output contains no new values
}

func recordHome(t *testing.T, name string) {
	first := tell(t, name)
	time.Sleep(1100 * time.Millisecond)
	second := tell(t, name)
	m := &merger{numbers: map[string]string{}}
	var lines bytes.Buffer
	for i := range first {
		r := first[i]
		m.fresh, m.at = r.fresh, r.Run
		r.Got = m.merge("", r.Got, second[i].Got)
		e := json.NewEncoder(&lines)
		e.SetEscapeHTML(false)
		if err := e.Encode(r.result); err != nil {
			t.Fatal(err)
		}
	}
	for _, problem := range m.problems {
		t.Error(problem)
	}
	if err := os.WriteFile("testdata/expected/"+name+".jsonl", lines.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// tell plays testdata/stories/<name> in a newly unpacked home.
func tell(t *testing.T, name string) []told {
	if err := os.RemoveAll(filepath.Join(root, name)); err != nil {
		t.Fatal(err)
	}
	if err := unpack("testdata/homes/"+name+".tar.gz", nil); err != nil {
		t.Fatal(err)
	}
	s, err := newStory(name)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("stories/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var all []told
	env, fresh := map[string]string{}, true
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		words := strings.Fields(line)
		if line == "" || line[0] == '#' {
			continue
		}
		switch words[0] {
		case "env":
			for _, word := range words[1:] {
				key, value, _ := strings.Cut(word, "=")
				if env[key] = value; value == "" {
					delete(env, key)
				}
			}
			continue
		case "continue":
			fresh = false
			continue
		case "set":
			last := &all[len(all)-1]
			if last.Set == nil {
				last.Set = map[string]string{}
			}
			last.Set[words[1]] = words[2]
			s.remember(result{Set: map[string]string{words[1]: words[2]}}, last.Got)
			continue
		}
		retry := 0
		if words[0] == "retry" {
			_, _ = fmt.Sscan(words[1], &retry)
			line = strings.Join(words[2:], " ")
		}
		for _, command := range expand(line) {
			r := told{result{Run: command, Env: maps.Clone(env), Retry: retry}, fresh}
			if r.Got, err = s.run(t.Context(), r.result, command); err != nil {
				t.Fatal(err)
			}
			all = append(all, r)
		}
	}
	return all
}

// expand expands "look", for a home, "look THREAD", and "glance THREAD" into commands.
func expand(line string) []string {
	words := strings.Fields(line)
	var templates []string
	switch {
	case words[0] == "look" && len(words) == 1:
		templates = ofHome
	case words[0] == "look":
		templates = slices.Concat(briefly, ofThread)
	case words[0] == "glance":
		templates = briefly
	default:
		return []string{line}
	}
	var all []string
	for _, command := range templates {
		all = append(all, strings.ReplaceAll(command, "THREAD", words[len(words)-1]))
	}
	return all
}

// ofHome and ofThread are all read-only commands; briefly contains the most informative ones.
var (
	ofHome = []string{
		"uwf thread list --all --json", "uwf thread list --json",
		"uwf thread list --status suspended,cancelled --limit 2 --json", "uwf thread running --json",
		"uwf inbox --json", "uwf stats --json", "uwf stats --by workflow,role,model,agent --json",
		"uwf workflow list --json", "uwf thread worktrees --json", "uwf config list --json",
		"uwf config show --origin --json", "uwf remote list --json", "uwf log list --json", "uwf log show --json",
		"uwf cas fsck --json", "uwf cas stat --json", "uwf cas list --json", "uwf cas schema list --json",
		"uwf doctor --json", "ocas --home $STORE list", "ocas --home $STORE fsck",
		"uwf cas gc --dry-run --grace 0s --json",
	}
	briefly = []string{
		"uwf thread show THREAD --full --json", "uwf thread read THREAD --all --json",
		"uwf thread diagnose THREAD --json", "uwf step show THREAD@-1 --json",
		"uwf thread wait THREAD --timeout 100ms --json",
	}
	ofThread = []string{
		"uwf thread show THREAD --json", "uwf thread steps THREAD --json",
		"uwf thread read THREAD --quota 300 --json", "uwf thread read THREAD --live --json",
		"uwf thread graph THREAD --format json", "uwf thread graph THREAD --format mermaid",
		"uwf thread diff THREAD THREAD --json", "uwf step turns THREAD --json", "uwf step read THREAD@-1 --json",
		"uwf step read THREAD@1 --prompt --json", "uwf step diff THREAD@-1 --json", "uwf thread watch THREAD --json",
		"uwf thread export THREAD -o tmp.uwfb --json", "uwf bundle verify tmp.uwfb --json",
		"uwf thread show THREAD --bundle tmp.uwfb --json",
	}
)

// merger finds the differences between two recordings and replaces them by placeholders.
type merger struct {
	at       string
	fresh    bool
	numbers  map[string]string // placeholders by pairs of values
	problems []string
}

func (m *merger) problem(path string, a, b any) any {
	m.problems = append(m.problems, fmt.Sprintf("%s: %s: %s or %s", m.at, path, whole(a), whole(b)))
	return a
}

func (m *merger) merge(path string, a, b any) any {
	switch first := a.(type) {
	case map[string]any:
		second, ok := b.(map[string]any)
		if !ok || !slices.Equal(slices.Sorted(maps.Keys(first)), slices.Sorted(maps.Keys(second))) {
			return m.problem(path, a, b)
		}
		merged := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(first)) {
			merged[key] = m.merge(path+"."+key, first[key], second[key])
		}
		return merged
	case []any:
		second, ok := b.([]any)
		if !ok || len(first) != len(second) {
			return m.problem(path, a, b)
		}
		merged := make([]any, len(first))
		for i := range first {
			merged[i] = m.merge(path, first[i], second[i])
		}
		return merged
	case string:
		second, ok := b.(string)
		if !ok {
			return m.problem(path, a, b)
		}
		return m.text(path, first, second)
	case json.Number:
		second, ok := b.(json.Number)
		if !ok {
			return m.problem(path, a, b)
		}
		return m.number(path, first, second)
	}
	if a != b {
		return m.problem(path, a, b)
	}
	return a
}

func (m *merger) number(path string, a, b json.Number) any {
	key := path[strings.LastIndex(path, ".")+1:]
	long := len(a) == 13 && len(b) == 13
	switch {
	case !m.fresh && slices.Contains([]string{"durationMs", "ms", "tookMs"}, key):
		return "‹took›"
	case !m.fresh && (key == "bytes" || key == "freedBytes"):
		return "‹size›"
	case a == b && (!long || m.fresh):
		return a
	case long:
		return "‹time›"
	case key == "pid":
		return "‹pid›"
	case strings.HasSuffix(strings.ToLower(key), "bytes"):
		return "‹size›"
	}
	return m.problem(path, a, b)
}

// words matches the parts of a text that may differ.
const words = `[0-9A-Za-z_]+(?:[.:+-][0-9A-Za-z_]+)*`

// text merges two texts word by word.
func (m *merger) text(path, a, b string) any {
	word := regexp.MustCompile(words)
	first, second := word.FindAllStringIndex(a, -1), word.FindAllStringIndex(b, -1)
	if len(first) != len(second) {
		return m.problem(path, a, b)
	}
	var merged strings.Builder
	i, j := 0, 0
	for n := range first {
		if a[i:first[n][0]] != b[j:second[n][0]] {
			return m.problem(path, a, b)
		}
		one, two := a[first[n][0]:first[n][1]], b[second[n][0]:second[n][1]]
		mark := m.word(path, one, two)
		if mark == "" {
			return m.problem(path, a, b)
		}
		merged.WriteString(a[i:first[n][0]] + mark)
		i, j = first[n][1], second[n][1]
	}
	if a[i:] != b[j:] {
		return m.problem(path, a, b)
	}
	return merged.String() + a[i:]
}

// word returns the placeholder for two words, or "" if they must not differ.
func (m *merger) word(path, a, b string) string {
	is := func(class string) bool {
		whole := regexp.MustCompile(`^(?:` + classes[class] + `)$`)
		return whole.MatchString(a) && whole.MatchString(b)
	}
	if !m.fresh {
		if is("time") {
			return "‹time›"
		}
		if is("took") && strings.TrimRight(a, "msh") != a {
			return "‹took›"
		}
	}
	if a == b {
		return a
	}
	for _, class := range []string{"thread", "hash", "seal", "commit"} {
		if is(class) {
			pair := class + " " + a + " " + b
			if m.numbers[pair] == "" {
				m.numbers[pair] = fmt.Sprintf("‹%s %d›", class, len(m.numbers)+1)
			}
			return m.numbers[pair]
		}
	}
	switch {
	case is("time"):
		return "‹time›"
	case is("took") && strings.TrimRight(a, "msh") != a:
		return "‹took›"
	case is("pid") && strings.HasSuffix(path, "pid"):
		return "‹pid›"
	}
	return ""
}
