package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// fuzzed is a format that others write, and the fuzz test of its parser. Each
// test holds its inputs to a second of processor time and 200 MB (util/fuzzing).
type fuzzed struct{ format, pkg, test string }

func parsersOf() []fuzzed {
	return []fuzzed{
		{"YAML", "util/yamldoc", "FuzzParse"},
		{"frontmatter", "step/frontmatter", "FuzzParse"},
		{"workflow files", "moderator/workflow", "FuzzParse"},
		{"config.yaml", "util/config", "FuzzParse"},
		{"JSONata", "moderator/jsonata", "FuzzParse"},
		{"JSONata, run", "moderator/jsonata", "FuzzEval"},
		{"mustache", "moderator/mustache", "FuzzRender"},
		{"CBOR", "cas", "FuzzDecode"},
		{"node files", "cas", "FuzzUnmarshalFile"},
		{"JSON arguments", "utilagent/llm", "FuzzParseArgs"},
		{"tools' arguments", "utilagent/tools", "FuzzArguments"},
		{"SSE", "utilagent/llm", "FuzzStream"},
		{"bundles", "cas/bundle", "FuzzOpen"},
		{"threads.yaml", "cas/heads/fileheads", "FuzzTable"},
		{"history.jsonl", "cas/heads/fileheads", "FuzzHistory"},
		{"facts.jsonl", "cas/heads/fileheads", "FuzzFacts"},
		{"argv", "cmd/uwf/internal/cli", "FuzzArgv"},
	}
}

// turn is how long one parser is fuzzed before the next.
const turn = 10 * time.Second

// parsers drives the fuzz tests of the tree, in the order of the seed. It needs
// the sources; in the short form the tests' own seeds, which every `go test`
// runs, are what there is time for.
func parsers(ctx context.Context, t *trial) error {
	if _, err := os.Stat(filepath.Join(t.src, "go.work")); err != nil || t.budget < turn {
		t.note("not here: it needs the sources, and %s", turn)
		return nil
	}
	all := parsersOf()
	t.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for t.time(ctx) {
		p := all[t.rounds%len(all)]
		if err := t.fuzz(ctx, p); err != nil {
			return fmt.Errorf("%s: %w", p.format, err)
		}
		t.rounds++
	}
	t.note("%d of %d parsers, %s each", min(t.rounds, len(all)), len(all), turn)
	return nil
}

// fuzz runs one fuzz test for a turn.
func (t *trial) fuzz(ctx context.Context, p fuzzed) error {
	cmd := exec.CommandContext(ctx, "go", "test", "-run=^$", "-fuzz=^"+p.test+"$", "-fuzztime="+turn.String(), "-parallel=2", "./"+p.pkg)
	cmd.Dir, cmd.Env = t.src, t.env.Environ
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.As(err, &exit):
		return fmt.Errorf("go test -fuzz=%s ./%s: %s", p.test, p.pkg, head(out.String()))
	}
	return err
}
