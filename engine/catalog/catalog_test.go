package catalog_test

import (
	"context"
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/catalog"
	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/hints"
	"github.com/united-workforce/uwf/util/prosetest"
)

const one = `name: one
description: One role.
roles:
  writer:
    description: Writes.
    goal: Write.
    capabilities: []
    procedure: Write.
    output: A text.
    frontmatter: {type: object, properties: {$status: {const: done}}, required: [$status]}
graph:
  $START: {_: {role: writer, prompt: Write.}}
  writer: {done: {role: $END, prompt: Done.}}
`

// opened returns an engine on a new home, its catalog for a directory with one.yaml, and the notes.
func opened(t *testing.T) (*engine.Engine, *catalog.Catalog, *[]string) {
	t.Helper()
	dir, home := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "one.yaml"), []byte(one), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(home, "config.yaml"), []byte("agents: {a: {command: uwf-a}}\ndefaultAgent: a\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(home, ".env"), []byte("GREETING=hello\n"), 0o600))
	process := env.Env{Dir: dir, Environ: []string{"UWF_HOME=" + home, "PATH=" + os.Getenv("PATH")}, Now: time.Now, Rand: rand.Reader, Exe: "/bin/other"}
	e, err := engine.Open(t.Context(), process, engine.Options{})
	require.NoError(t, err)
	var notes []string
	c := catalog.Of(e)
	c.Note = func(text string) { notes = append(notes, text) }
	return e, c, &notes
}

// An engine opened by another program has the home's config and .env, and doesn't take that program for uwf.
func TestOpen(t *testing.T) {
	t.Parallel()
	e, _, _ := opened(t)
	c, err := e.Reader.Config(t.Context())
	require.NoError(t, err)
	require.Equal(t, "a", c.DefaultAgent)
	require.Equal(t, "hello", e.Reader.Env.Get("GREETING"))
	require.NotContains(t, e.BaseEnv, "GREETING=hello")
	require.Empty(t, e.Uwf)
	require.NoDirExists(t, e.Reader.Dirs.Store, "opening writes nothing")
}

// A workflow is found by its file, its registered name, its hash and a prefix of the name. A thread can be
// started with it.
func TestFind(t *testing.T) {
	t.Parallel()
	e, c, notes := opened(t)
	put, err := c.Put(t.Context(), "one.yaml")
	require.NoError(t, err)
	require.Equal(t, "one", put.Name)
	for _, name := range []string{"./one.yaml", "one", string(put.Hash), string(put.Hash[:6])} {
		h, err := c.Find(t.Context(), name)
		require.NoError(t, err, name)
		require.Equal(t, put.Hash, h, name)
		def, err := c.Definition(t.Context(), name)
		require.NoError(t, err, name)
		require.Equal(t, "Write.", def.Roles["writer"].Goal)
	}
	require.Equal(t, "one", c.Name(t.Context(), put.Hash))
	items, err := c.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, []protocol.WorkflowItem{{Name: "one", Hash: string(put.Hash), Origin: catalog.OriginRegistry}}, items)
	_, err = e.Start(t.Context(), protocol.Start{Workflow: put.Hash, Prompt: "Go.", Cwd: e.Reader.Env.Dir}, engine.StartOptions{})
	require.NoError(t, err)
	require.Empty(t, *notes)
}

// A workflow file of the project that hides a registered name is used, and noted.
func TestProject(t *testing.T) {
	t.Parallel()
	e, c, notes := opened(t)
	put, err := c.Put(t.Context(), "one.yaml")
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(e.Reader.Env.Dir, ".workflows"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(e.Reader.Env.Dir, ".workflows", "one.yaml"), []byte(one+"# other\nlimits: {maxSteps: 3}\n"), 0o600))
	h, err := c.Find(t.Context(), "one")
	require.NoError(t, err)
	require.NotEqual(t, put.Hash, h)
	require.Len(t, *notes, 1)
	prosetest.Text(t, (*notes)[0])
}

// Workflow files of older versions keep their hashes.
func TestWorkflowsOfBeforeKeepTheirHashes(t *testing.T) {
	t.Parallel()
	_, c, _ := opened(t)
	base, err := os.ReadFile(filepath.Join("..", "..", "moderator", "workflow", "testdata", "base.yaml"))
	require.NoError(t, err)
	for want, text := range map[string]string{
		"DDJDQSN49K0WR": one, "8VE4FC06S8GN9": string(base),
		"7Z7F45B520ABP": one + "limits: {maxSteps: 3, maxVisitsPerRole: 2}\n", "E3XFB6X1RN1PZ": one + "limits: {}\n",
	} {
		def, err := workflow.Parse(workflow.Source{Data: []byte(text)})
		require.NoError(t, err)
		path := filepath.Join(c.Env.Dir, def.Name+".yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		h, err := c.Find(t.Context(), path)
		require.NoError(t, err)
		assert.Equal(t, want, string(h), "%s", text[len(text)-30:])
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	e, c, _ := opened(t)
	var coded *protocol.Error
	_, err := c.Find(t.Context(), "on")
	require.ErrorAs(t, err, &coded)
	require.Equal(t, protocol.CodeNotFound, coded.Code)
	_, err = c.Read(t.Context(), "oen.yaml")
	require.ErrorAs(t, err, &coded)
	prosetest.Text(t, hints.All("", coded))
	require.NoError(t, os.WriteFile(filepath.Join(e.Reader.Env.Dir, "bad.yaml"), []byte("name: bad\n"), 0o600))
	_, err = c.Read(t.Context(), "bad.yaml")
	require.ErrorAs(t, err, new(*workflow.Problems))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.Start(ended, e, "one.yaml", protocol.Start{Cwd: e.Reader.Env.Dir}, engine.StartOptions{})
	require.ErrorAs(t, err, &coded)
	require.Equal(t, protocol.CodeInterrupted, coded.Code)
}

// With an unreadable registry, a project's workflow might hide a registered one, so it is refused.
func TestUnreadableRegistry(t *testing.T) {
	t.Parallel()
	e, c, _ := opened(t)
	_, err := c.Put(t.Context(), "one.yaml")
	require.NoError(t, err)
	hidden := strings.Replace(one, "One role", "Another role", 1)
	dir := filepath.Join(c.Env.Dir, ".workflows")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "one.yaml"), []byte(hidden), 0o600))
	path := filepath.Join(e.Reader.Dirs.Home, "registry.yaml")
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Mkdir(path, 0o700))
	_, err = c.Find(t.Context(), "one")
	require.ErrorContains(t, err, path)
}
