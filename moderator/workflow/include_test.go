package workflow_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
)

// project writes files, by their names, and returns their directory.
func project(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "project")
	require.NoError(t, os.Mkdir(dir, 0o755))
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

// parseIn parses base.yaml with the edits, as a file of a directory.
func parseIn(t *testing.T, dir string, edits ...string) (workflow.Definition, error) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	return workflow.Parse(workflow.Source{
		File: "flows/base.yaml", Path: filepath.Join(dir, "base.yaml"), Dir: root, Data: []byte(base(t, edits...)),
	})
}

const metaOfWorker = "    meta:\n      type: object\n      properties:\n        summary: { type: string }\n        left: { type: [string, \"null\"] }\n"

func TestInclude(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{
		"think.md":           "\ufeff* Think.\r\n* Again.\n",
		"parts/summary.json": "{\n\t\"type\": \"string\"\n}\n",
		"parts/worker.yaml":  "type: object\nproperties:\n  summary: !include summary.json\n",
	})
	def, err := parseIn(t, dir, "procedure: Think.", "procedure: !include think.md", metaOfWorker, "    meta: !include ./parts/worker.yaml\n")
	require.NoError(t, err)
	require.Equal(t, "* Think.\n* Again.\n", def.Roles["planner"].Procedure)
	require.Equal(t, map[string]any{"type": "object", "properties": map[string]any{"summary": map[string]any{"type": "string"}}}, def.Schemas["worker"])
}

func TestIncludedTwice(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"text.md": "Do it."})
	def, err := parseIn(t, dir, "procedure: Think.", "procedure: &p !include text.md", "goal: Do it.", "goal: *p")
	require.NoError(t, err)
	require.Equal(t, "Do it.", def.Roles["planner"].Procedure)
	require.Equal(t, "Do it.", def.Roles["worker"].Goal)
}

// A problem in an included file is told with that file's name and line.
func TestProblemsInIncludedFiles(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{
		"ask.md":             "* First:\n\n  {{qestion}}\n",
		"sub/graph.yaml":     "$START: { _: planer }\nplanner: !include more/edges.yml\nworker: { _: $END }\n",
		"sub/more/edges.yml": "ready: { role: worker, prompt: x }\nunclear:\n  role: $SUSPEND\n  promt: y\n",
		"broken.yaml":        "type: object\nproperties: {\n",
		"schema.json":        "{\n  \"type\": \"object\",\n  \"propertes\": {}\n}",
	})
	report := func(edits ...string) string {
		_, err := parseIn(t, dir, edits...)
		require.Error(t, err)
		return err.Error()
	}
	require.Equal(t, `flows/ask.md:3:3: prompt of graph[planner][unclear]: variable "qestion" does not exist: the frontmatter of "planner" has no such field when it answers "unclear"
    {{qestion}}
    → did you mean "question"?`, report(`prompt: "{{question}}"`, `prompt: !include ask.md`))
	require.Contains(t, report(metaOfWorker, "    meta: !include schema.json\n"), `flows/schema.json:3:3: the frontmatter of "worker": /propertes: `)
	require.Contains(t, report(metaOfWorker, "    meta: !include broken.yaml\n"), "flows/broken.yaml:2:13: the bracket { is never closed")

	text := base(t)
	graph := text[strings.Index(text, "graph:"):strings.Index(text, "limits:")]
	require.Equal(t, []string{
		`1:14: graph[$START][_] leads to "planer", but there is no such role → did you mean "planner"?`,
		`4:3: graph[planner][unclear] has no key "promt" → did you mean "prompt"?`,
	}, told(t, func() error { _, err := parseIn(t, dir, graph, "graph: !include sub/graph.yaml\n"); return err }())[2:])
}

func TestIncludeRefuses(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{
		"sub/up.yaml":    "a: !include ../think.md\n",
		"think.md":       "x",
		"latin1.md":      "caf\xe9",
		"self.yaml":      "a: !include self.yaml\n",
		"a.yaml":         "a: !include b.yaml\n",
		"b.yaml":         "a: !include a.yaml\n",
		"large.md":       strings.Repeat("x", 1<<20+1),
		"doubled.yaml":   "[" + strings.Repeat("!include double0.yaml,", 2) + "]",
		"sub/deeper.txt": "x",
	})
	for i := range 20 {
		name := filepath.Join(dir, fmt.Sprintf("double%d.yaml", i))
		require.NoError(t, os.WriteFile(name, []byte("["+strings.Repeat(fmt.Sprintf("!include double%d.yaml,", i+1), 2)+"]"), 0o600))
	}
	outside := filepath.Join(filepath.Dir(dir), "secret.md")
	require.NoError(t, os.WriteFile(outside, []byte("secret"), 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "link.md")))
	require.NoError(t, os.Symlink("sub", filepath.Join(dir, "within")))
	const below = "only what is in the directory of the including file can be included, or below it"
	tests := []struct{ name, says, remedy string }{
		{"thnik.md", `cannot include "thnik.md": there is no such file`, `did you mean "think.md"?`},
		{"../secret.md", `cannot include "../secret.md": path escapes from parent`, below},
		{"link.md", `cannot include "link.md": path escapes from parent`, below},
		{outside, "the path must be relative to the file that includes it", below},
		{"sub", `cannot include "sub": it is not a regular file`, below},
		{"sub/up.yaml", `cannot include "../think.md": path escapes from parent`, below},
		{"latin1.md", `cannot include "latin1.md": it is not a UTF-8 text`, "save it as UTF-8"},
		{"large.md", `cannot include "large.md": it is larger than 1048576 bytes`, below},
		{"self.yaml", "files include each other in a circle: base.yaml → self.yaml → self.yaml", ""},
		{"a.yaml", "files include each other in a circle: base.yaml → a.yaml → b.yaml → a.yaml", ""},
		{"base.yaml", "files include each other in a circle: base.yaml → base.yaml", ""},
		{"doubled.yaml", "files include each other more than 10 deep", ""},
		{`""`, `!include needs the name of a file, but this is blank`, "!include file.md"},
		{"[a]", `!include needs the name of a file, but this is a list`, "!include file.md"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			_, err := parseIn(t, dir, "procedure: Think.", "procedure: !include "+tt.name)
			var problems *workflow.Problems
			require.ErrorAs(t, err, &problems)
			i := slices.IndexFunc(problems.List, func(p protocol.Problem) bool { return strings.Contains(p.Message, tt.says) })
			require.GreaterOrEqual(t, i, 0, "%v", err)
			require.Equal(t, tt.remedy, problems.List[i].Remedy)
			require.Less(t, time.Since(began), time.Minute)
		})
	}
	_, err := parseIn(t, dir, "procedure: Think.", "procedure: !include within/deeper.txt")
	require.NoError(t, err, "a symbolic link within the directory is no way out")
}

// A file that is included again and again multiplies: what counts is what the
// document has in the end. It is not parallel, because another test counts what
// is allocated.
func TestIncludesAreBounded(t *testing.T) {
	dir := project(t, map[string]string{
		"wide.yaml":  "[" + strings.Repeat("x,", 40_000) + "]",
		"bytes.md":   strings.Repeat("x", 1<<20),
		"empty.yaml": "",
	})
	for file, want := range map[string]string{
		"wide.yaml":  "with what is included, the workflow has more than 200000 values",
		"bytes.md":   "all files together are larger than 4194304 bytes",
		"empty.yaml": "more than 200 files are included",
	} {
		began := time.Now()
		_, err := parseIn(t, dir, "procedure: Think.", "procedure: ["+strings.Repeat("!include "+file+",", 300)+"]")
		require.ErrorContains(t, err, want)
		require.Less(t, time.Since(began), time.Minute)
	}
}
