package ocascli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/gc"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/render"
)

// The stories of cmd/ocas run the commands as people do; these tests cover the rest.

// oneAtATime is held while a command line runs, because the library's --help flag is global to the process.
var oneAtATime sync.Mutex

// command runs one command line in a directory.
func command(t *testing.T, dir string, args ...string) error {
	t.Helper()
	oneAtATime.Lock()
	defer oneAtATime.Unlock()
	var out bytes.Buffer
	c := &CLI{
		Program: "ocas", Format: func() render.Format { return render.Text },
		Dirs: func() (home.Dirs, error) {
			return home.Dirs{Home: filepath.Join(dir, "home"), Store: filepath.Join(dir, "store")}, nil
		},
		Env: env.Env{Dir: dir, Stdin: bytes.NewReader(nil), Stdout: &out, Stderr: &out, Now: time.Now},
	}
	app := &ucli.App{Commands: c.Commands(), Writer: &out, ErrWriter: &out, ExitErrHandler: func(*ucli.Context, error) {}}
	ordered, err := cmdline.Reorder(app, args)
	require.NoError(t, err)
	return app.RunContext(t.Context(), append([]string{"ocas"}, ordered...))
}

func TestPrimitives(t *testing.T) {
	t.Parallel()
	s := castest.NewStore(t, cas.XXH64)
	for name, want := range map[string]cas.Hash{ // the original's
		"@ocas/string": "7VQ43ZSJTEWA7", "@ocas/number": "BEAZQGKVXMZT8", "@ocas/integer": "B26JM4PBHPAFK", "@ocas/boolean": "1AVHCXEJVDCPP",
		"@ocas/bool": "1AVHCXEJVDCPP", "@ocas/object": "944RT37WX1PQ5", "@ocas/array": "D45CW047XS17Y", "@ocas/null": "8E33KAS0HMAZ7",
	} {
		h, err := typeOf(t.Context(), s, name)
		require.NoError(t, err)
		require.Equal(t, want, h, name)
	}
	_, err := typeOf(t.Context(), s, "@ocas/output/put")
	require.Error(t, err)
	h, err := typeOf(t.Context(), s, "text")
	require.NoError(t, err)
	require.Equal(t, s.Kinds().Hash(protocol.KindText), h, "in a store of ours texts have our type")
}

func TestClassify(t *testing.T) {
	t.Parallel()
	corrupt := &cas.CorruptError{Hash: "0000000000001", Reason: "r"}
	for name, test := range map[string]struct {
		err  error
		want protocol.Code
	}{
		"its own code":  {&protocol.Error{Code: protocol.CodeLocked}, protocol.CodeLocked},
		"corrupt":       {fmt.Errorf("read: %w", corrupt), protocol.CodeCorrupt},
		"collision":     {&cas.CollisionError{Hash: "0000000000001"}, protocol.CodeCorrupt},
		"missing":       {fmt.Errorf("x: %w", cas.ErrNotFound), protocol.CodeCorrupt},
		"gc on damage":  {&gc.DamagedError{Count: 1, First: corrupt}, protocol.CodeCorrupt},
		"schema":        {&cas.SchemaError{Type: "0000000000001"}, protocol.CodeInvalid},
		"another type":  {&cas.TypeError{}, protocol.CodeInvalid},
		"anything else": {os.ErrPermission, protocol.CodeFailed},
	} {
		require.Equal(t, test.want, Classify(test.err, "ocas").Code, name)
	}
}

func TestForeign(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name, err := fsstore.Foreign(filepath.Join(dir, "nowhere"))
	require.NoError(t, err)
	require.Empty(t, name)
	for _, own := range []string{"log", "log.lock", "gc.lock", "format.lock"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, own), nil, 0o644))
	}
	name, err = fsstore.Foreign(dir)
	require.NoError(t, err)
	require.Empty(t, name, "a store that is being made")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "photo.jpg"), nil, 0o644))
	name, err = fsstore.Foreign(dir)
	require.NoError(t, err)
	require.Equal(t, "photo.jpg", name)
}

// A home that has used the store and is missing stops the collector.
func TestAMissingHomeStopsGC(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	err := command(t, dir, "init")
	require.NoError(t, err)
	away := filepath.Join(dir, "away")
	used, err := fsstore.Open(t.Context(), filepath.Join(dir, "store"), fsstore.Options{Home: away})
	require.NoError(t, err)
	require.NoError(t, used.Put(t.Context(), castest.Node(t, cas.XXH3, "of that home")))
	err = command(t, dir, "gc")
	var coded *protocol.Error
	require.ErrorAs(t, err, &coded)
	require.Equal(t, protocol.CodeNotFound, coded.Code)
	require.Contains(t, coded.Message, away)
	require.NoError(t, os.MkdirAll(away, 0o755))
	err = command(t, dir, "gc")
	require.NoError(t, err)
}

// Invalid arguments are rejected before anything is opened.
func TestBadArguments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, args := range [][]string{
		{"gc", "--grace", "-1h"}, {"get"}, {"get", "a", "b"},
	} {
		err := command(t, dir, args...)
		var coded *protocol.Error
		require.ErrorAs(t, err, &coded, args)
		require.Equal(t, protocol.CodeUsage, coded.Code, args)
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

// A result without a text form is printed as YAML for people.
func TestANodeIsPrintedAsYAML(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	c := &CLI{Env: env.Env{Stdout: &out}, Format: func() render.Format { return render.Text }}
	require.NoError(t, c.print(map[string]any{"a": 1}, nil))
	require.Equal(t, "a: 1\n", out.String())
}
