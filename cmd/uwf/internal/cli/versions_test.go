package cli

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/graph"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
)

// The threads of testdata/home-1.txt, written by a uwf that knew only the first version of each kind: one
// waits for a person, one can be stepped, one has ended.
const (
	asks, works, done = "01M82BR31CYXCBBS3FCV5N9W8S", "01M82BR3ZMFRN182X31XEDR6AZ", "01M82BR4G3792Q428EXXT6KZRD"
)

// homeArgs has a command line for every command that uses a home, with the exit status if it is not 0. STEP
// and TURN belong to the thread that can be stepped. If the store belongs to a newer uwf, each of them must
// fail.
func homeArgs() map[string]string {
	return map[string]string{
		"run": "greet.yaml -p hi --agent false =5", "run-due": "=4", "workflow put": "greet.yaml", "workflow show": "loop", "workflow list": "", "workflow trust": "loop --yes", "workflow diff": "loop ask =1", "workflow graph": "loop",
		"thread start": "loop -p hi", "thread step": works + " --agent false =5", "thread answer": asks + " --as Ada =1", "thread resume": asks + " -p Monday --agent false =5", "thread undo": works, "thread redo": works + " =1", "thread apply": works + " =1", "thread bisect": works + " STEP true =2", "thread worktrees": "", "thread retry": works + " -p x --agent false =5",
		"thread wait": done, "thread stop": works, "thread message": works + " x", "thread kill": works, "thread fork": "STEP", "thread replay": works + " --from 1 --agent false =5",
		"thread show": works, "thread list": "--all", "inbox": "", "stats": "", "thread read": works, "thread steps": works, "thread title": works + " x", "thread trust": works + " --yes", "thread rm": done + " --yes", "workflow rm": "loop", "thread watch": done, "thread diagnose": works,
		"thread diff": works + " " + done + " =1", "thread graph": works, "thread seal": works, "thread redact": works + " --node TURN", "thread salvage": works + " =2",
		"thread export": works + " -o y.uwfb", "thread step-details": "STEP", "thread notify": works + " =1", "step list": works, "step fork": "STEP", "thread import": "x.uwfb",
		"thread prune": "--keep-days 0", "step show": "STEP", "step diff": "STEP =3", "step turns": works, "step details": "STEP", "step read": "STEP",
		"step put": "--output x.md =2", "step extract": "--output x.md =2", "step turn": "--content x.md =2", "schema hash": "text",
		"cas init": "", "cas get": "STEP", "cas put": "text \"x\"", "cas put-text": "hi", "cas has": "STEP", "cas refs": "STEP", "cas walk": "STEP", "cas list": "",
		"cas schema put": "s.json", "cas schema get": "text", "cas schema list": "", "cas schema validate": "text \"x\"", "cas verify": "STEP", "cas reindex": "",
		"push": works + " ./team =3", "pull": works + " ./team =3", "fetch": "./team =3",
		"cas fsck": "--repair", "cas gc": "--grace 0s", "cas export": "STEP -o y.uwfb", "cas import": "x.uwfb",
	}
}

// Data written by an older uwf stays valid, and so does data written by a newer one.
//
// Not parallel, because the command-line library has a global flag that each run in this process writes.
func TestHomesOfOtherVersions(t *testing.T) {
	for name, version := range map[string]int{"the version before": 1, "version 2": 2, "version 9": 9} {
		t.Run(name, func(t *testing.T) {
			home := unpackHome(t)
			if version > 1 {
				growHome(t, home, version)
			}
			bundle := filepath.Join(t.TempDir(), "x.uwfb")
			out, status := uwfIn(t, home, "thread export "+works+" -o "+bundle)
			require.Zero(t, status, out)
			known := homeArgs()
			for _, path := range leaves((commands{&app.App{}}).root().Commands, "") {
				if isStoreless(path) {
					continue
				}
				args, ok := known[path]
				if !assert.True(t, ok, "uwf %s: what does it do in the home of another version? Name it in homeArgs", path) {
					continue
				}
				args, want, _ := strings.Cut(args, "=")
				copied := t.TempDir()
				require.NoError(t, os.CopyFS(copied, os.DirFS(home)))
				args = strings.NewReplacer(nodesOf(t, home)...).Replace(strings.ReplaceAll(args, "x.uwfb", bundle))
				out, status := uwfIn(t, copied, path+" "+args)
				got := ""
				if status != 0 {
					got = strconv.Itoa(status)
				}
				assert.Equal(t, want, got, "uwf %s %s: %s", path, args, out)
				if out, status := uwfIn(t, copied, "cas fsck"); assert.Zero(t, status, "after uwf %s: %s", path, out) {
					require.NoError(t, os.RemoveAll(copied))
				}
			}
		})
	}
}

// uwfIn runs a command in a new directory.
func uwfIn(t *testing.T, home, line string) (out string, status int) {
	t.Helper()
	work := t.TempDir()
	for name, text := range map[string]string{"greet.yaml": greeting, "x.md": "hi", "s.json": `{"type":"string"}`} {
		require.NoError(t, os.WriteFile(filepath.Join(work, name), []byte(text), 0o644))
	}
	var buf bytes.Buffer
	status = Main(t.Context(), env.Env{
		Args: append([]string{"--home", home}, strings.Fields(line)...), Dir: work, Now: time.Now,
		Environ: []string{"PATH=" + os.Getenv("PATH")},
		Stdin:   strings.NewReader(""), Stdout: &buf, Stderr: &buf, Rand: strings.NewReader(strings.Repeat("x", 100)),
	})
	return buf.String(), status
}

// nodesOf returns pairs of placeholders and nodes.
func nodesOf(t *testing.T, home string) []string {
	t.Helper()
	var steps protocol.ThreadSteps
	out, _ := uwfIn(t, home, "thread steps "+works+" --format json")
	require.NoError(t, json.Unmarshal([]byte(out), &steps), out)
	step, ok := steps.Steps[1].(map[string]any)
	require.True(t, ok)
	detail := step["detail"].(string)
	s := storeIn(t, home)
	n, err := s.Get(t.Context(), cas.Hash(detail))
	require.NoError(t, err)
	d, err := cas.As[protocol.Detail](t.Context(), s, n)
	require.NoError(t, err)
	return []string{"STEP", step["hash"].(string), "TURN", string(d.Turns[0])}
}

func storeIn(t *testing.T, home string) *fsstore.Store {
	t.Helper()
	s, err := fsstore.Open(t.Context(), filepath.Join(home, "cas"), fsstore.Options{FS: durable.OS(), Home: home})
	require.NoError(t, err)
	return s
}

// unpackHome creates the home in testdata: each line is a path and its content.
func unpackHome(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "home-1.txt"))
	require.NoError(t, err)
	home := t.TempDir()
	for line := range strings.Lines(string(text)) {
		path, content, _ := strings.Cut(strings.TrimSpace(line), " ")
		data, err := base64.StdEncoding.DecodeString(content)
		require.NoError(t, err)
		path = filepath.Join(home, filepath.FromSlash(path))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, data, 0o644))
	}
	return home
}

// growHome rewrites the threads of a home as a newer uwf might have written them: every node of a chain gets
// the given version, if its kind has it, with references that only that version knows.
func growHome(t *testing.T, home string, version int) {
	t.Helper()
	ctx := t.Context()
	s := storeIn(t, home)
	put := func(typ cas.Hash, value any) cas.Hash {
		payload, err := cas.Encode(value)
		require.NoError(t, err)
		n := cas.Node{Hash: s.Algorithm().Sum(typ, payload), Type: typ, Payload: payload, Timestamp: 1795375763362}
		require.NoError(t, s.Commit(ctx, n))
		return n.Hash
	}
	unknown := put(s.Kinds().Hash(protocol.KindText), "for a newer uwf")
	types := map[protocol.Kind]cas.Hash{}
	for _, kind := range protocol.Kinds() {
		newest := protocol.Type{Kind: kind, Version: min(version, kind.Versions())}
		var schema map[string]any
		require.NoError(t, json.Unmarshal(protocol.SchemaJSON(newest), &schema))
		if version == 9 {
			schema["title"] = protocol.Type{Kind: kind, Version: version}.Title()
			if properties, ok := schema["properties"].(map[string]any); ok {
				properties["brandNew"] = map[string]any{"type": "string", "format": "ocas_ref"}
			}
		}
		types[kind] = put(s.Kinds().MetaHash(), schema)
	}
	now := map[string]string{}
	var start string // the newest, for a child that has ended at once
	grow := func(v graph.Visited) error {
		kind, _, err := s.Kinds().Of(ctx, s, v.Node.Type)
		if err != nil || kind == "" || kind == protocol.KindWorkflow {
			return err
		}
		value, err := v.Node.Value()
		if err != nil {
			return err
		}
		if fields, ok := replaced(value, now).(map[string]any); ok {
			maps.Copy(fields, added(kind, version, string(unknown), start))
			value = fields
		}
		now[string(v.Node.Hash)] = string(put(types[kind], value))
		if kind == protocol.KindStart {
			start = now[string(v.Node.Hash)]
		}
		return nil
	}
	heads := filepath.Join(home, "threads.yaml")
	text, err := os.ReadFile(heads)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		_, head, _ := strings.Cut(strings.TrimSpace(line), ": ")
		require.NoError(t, graph.BottomUp(ctx, s, []cas.Hash{cas.Hash(head)}, graph.BottomUpOptions{}, grow))
		text = bytes.ReplaceAll(text, []byte(head), []byte(now[head]))
	}
	require.NoError(t, os.WriteFile(heads, text, 0o644))
	for _, gone := range []string{"runs", filepath.Join("cas", "seals")} { // of the original chains
		require.NoError(t, os.RemoveAll(filepath.Join(home, gone)))
	}
}

// added returns fields that the first version of a kind does not have.
func added(kind protocol.Kind, version int, ref, start string) map[string]any {
	tree := "sha1:" + strings.Repeat("0", 40)
	usage := protocol.Usage{Turns: 1}
	switch {
	case version == 9:
		return map[string]any{"brandNew": ref}
	case kind == protocol.KindStart:
		return map[string]any{"inputs": map[string]any{"n": 1}, "child": protocol.Child{Of: protocol.Hash(ref)}, "workspace": protocol.Workspace{Mode: "here"}}
	case kind == protocol.KindStep:
		return map[string]any{
			"root": "/", "files": map[string]any{"tree": tree, "left": []string{"big"}}, "memo": map[string]any{"key": "k", "of": ref},
			"children": []any{map[string]any{"key": "k", "head": start, "status": "completed", "usage": usage}},
			"tries":    []any{map[string]any{"agent": "uwf-mock", "error": "e", "detail": ref, "atMs": 1}},
		}
	case kind == protocol.KindDetail:
		return map[string]any{"by": "Ada"}
	}
	return nil
}

// replaced returns a value with some words replaced.
func replaced(value any, now map[string]string) any {
	switch v := value.(type) {
	case string:
		if other, ok := now[v]; ok {
			return other
		}
	case []any:
		for i := range v {
			v[i] = replaced(v[i], now)
		}
	case map[string]any:
		out := maps.Clone(v)
		for key := range v {
			out[key] = replaced(v[key], now)
		}
		return out
	}
	return value
}
