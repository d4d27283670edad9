//go:build unix

package snapshot_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/snapshot"
	"github.com/united-workforce/uwf/util/programtest"
)

// Nothing in our git directory starts a program, regardless of who put it there and of the operation.
func TestNothingRunsFromOurGitDirectory(t *testing.T) {
	t.Parallel()
	w := repository(t)
	first := w.take().Tree
	w.sh(`echo two > a`)
	second := w.take().Tree
	evil := filepath.Join(w.dir, "evil")
	program := filepath.Join(w.dir, "program")
	programtest.Write(t, program, "#!/bin/sh\ntouch "+evil+"\nexit 1\n")
	var hostile strings.Builder
	for _, key := range []string{
		"core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.gitProxy", "core.askPass", "core.alternateRefsCommand",
		"filter.x.clean", "filter.x.smudge", "filter.x.process", "diff.external", "diff.x.command", "diff.x.textconv", "merge.x.driver",
		"gpg.program", "sequence.editor", "uploadpack.packObjectsHook", "credential.helper", "alias.update-index", "pack.packSizeLimit",
	} {
		section, name, _ := strings.Cut(key, ".")
		if sub, rest, ok := strings.Cut(name, "."); ok {
			section, name = section+" \""+sub+"\"", rest
		}
		hostile.WriteString("[" + section + "]\n\t" + name + " = " + program + "\n")
	}
	hostile.WriteString("[core]\n\thooksPath = hooks\n[remote \"p\"]\n\turl = ext::" + program + "\n\tpromisor = true\n[extensions]\n\tworktreeConfig = true\n[include]\n\tpath = more\n")
	plant := func() {
		for name, text := range map[string]string{
			"config": hostile.String(), "config.worktree": hostile.String(), "more": hostile.String(),
			"info/attributes": "* filter=x diff=x merge=x\n", "hooks/post-index-change": "", "hooks/reference-transaction": "", "hooks/post-checkout": "",
		} {
			path := filepath.Join(w.spec.Git, filepath.FromSlash(name))
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			if strings.HasPrefix(name, "hooks/") {
				text = "#!/bin/sh\ntouch " + evil + "\n"
			}
			_ = os.Remove(path)
			programtest.Write(t, path, text)
		}
	}
	for name, do := range map[string]func() error{
		"diff": func() error { _, err := snapshot.Diff(t.Context(), w.env, w.spec.Git, first, second); return err },
		"totals": func() error {
			_, err := snapshot.Totals(t.Context(), w.env, []string{w.spec.Git}, [][2]protocol.Tree{{first, second}})
			return err
		},
		"has": func() error { snapshot.Has(t.Context(), w.env, w.spec.Git, first); return nil },
		"collect": func() error {
			_, err := snapshot.Collect(t.Context(), w.env, w.spec.Git, w.repo.Common, snapshot.Needs{Gone: func(string) bool { return false }}, false, func(run func() error) error { return run() })
			return err
		},
		"tidy": func() error { return snapshot.Tidy(t.Context(), w.env, w.spec.Git, w.repo.Common) },
		"objects": func() error {
			o, err := snapshot.OpenObjects(w.env, []string{w.spec.Git})
			if err != nil {
				return err
			}
			_, _ = o.Object(t.Context(), first, true)
			return o.Close()
		},
		"begin": func() error {
			w.sh(`echo three > a`)
			_, err := snapshot.Begin(t.Context(), w.env, w.repo, &w.spec)
			return err
		},
		"restore": func() error {
			err := w.change("", first)
			return err
		},
	} {
		plant()
		_ = do() // an error is fine
		require.NoFileExists(t, evil, name)
	}
}
