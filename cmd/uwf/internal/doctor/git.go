package doctor

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/step/files"
	"github.com/united-workforce/uwf/util/plaintext"
)

// git reports whether the files of steps can be kept here, and what of them is not.
func (x *examination) git(ctx context.Context) {
	const area, older = "git", "install git 2.38 or newer"
	v, err := files.GitVersion(ctx, x.Env, x.Env.Dir)
	switch {
	case err != nil:
		x.note(area, older, "the files of steps are not kept: %v", err)
		return
	case !v.AtLeast(2, 31):
		x.warn(area, older, "git %s: the files of steps are not kept", v.Text)
		return
	case !v.AtLeast(2, 38):
		x.note(area, older, "git %s keeps the files of steps, but cannot bring a result to your branch by a merge", v.Text)
	default:
		x.ok(area, "git %s keeps the files of steps", v.Text)
	}
	dir, err := filepath.EvalSymlinks(x.Env.Dir)
	if err != nil {
		return
	}
	repo, err := files.Find(ctx, x.Env, dir)
	if errors.Is(err, files.ErrNone) {
		return
	}
	if err != nil {
		x.warn(area, "--workspace none works there as it is", "the files of %s are not kept: %s", plaintext.Line(dir), plaintext.Line(err.Error()))
		return
	}
	if old := filepath.Join(repo.Common, "uwf"); exists(filepath.Join(old, "uwf.lock")) {
		x.note(area, "rm -r "+plaintext.Word(old), "%s is of a build before the release, and is not read any more", plaintext.Line(old))
	}
	spec := files.Spec{Root: repo.Root}
	if x.config != nil && x.config.Workspace != nil {
		spec.MaxFile = int64(x.config.Workspace.MaxFileMB) << 20
	}
	left, err := repo.Survey(ctx, spec)
	switch {
	case err != nil:
		x.warn(area, "git status", "the files of %s cannot be listed: %s", plaintext.Line(repo.Root), plaintext.Line(err.Error()))
	case len(left) > 0:
		x.note(area, "", "a step in %s does not keep: %s", plaintext.Line(repo.Root), plaintext.Line(strings.Join(left, "; ")))
	}
}
