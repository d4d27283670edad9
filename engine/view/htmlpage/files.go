package htmlpage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/workspace"
	"github.com/united-workforce/uwf/protocol"
	kept "github.com/united-workforce/uwf/step/files"
)

// Files is what a step has done to the files that are kept with it.
type Files struct {
	List    []File
	More    int      // that are not listed
	Diff    []Change // nil: it is not small, or not shown
	Problem string   // why they are not known
}

// File is one that a step has added, changed or removed.
type File struct{ Path, What, Lines string }

// What is shown of the files of a step.
const (
	mostFiles     = 100
	mostDiffLines = 500
	mostDiffBytes = 64 << 10
)

// FilesOf is what a step has done to the files, with the lines that differ if they are few
// and are wanted; nil if none are kept with it.
func FilesOf(ctx context.Context, e *engine.Engine, s thread.Step, diff bool) *Files {
	if s.Files == nil {
		return nil
	}
	shown := &Files{}
	if err := shown.read(ctx, e, s.Hash, diff); err != nil {
		shown.Problem = firstLine(err)
	}
	return shown
}

func (f *Files) read(ctx context.Context, e *engine.Engine, step protocol.Hash, diff bool) error {
	states, err := e.Files().StepFiles(ctx, step)
	if err != nil {
		var coded *protocol.Error
		if errors.As(err, &coded) {
			return errors.New(coded.Message)
		}
		return err
	}
	list, err := states.Changes(ctx)
	if err != nil {
		return err
	}
	lines := 0
	for _, c := range list {
		lines += max(c.Added, 0) + max(c.Removed, 0)
		if len(f.List) < mostFiles {
			f.List = append(f.List, fileOf(c))
		}
	}
	f.More = len(list) - len(f.List)
	if diff && f.More == 0 && lines <= mostDiffLines {
		f.Diff, err = diffOf(ctx, states)
	}
	return err
}

func fileOf(c kept.Change) File {
	f := File{Path: Line(c.Path, LongestTitle), What: "changed", Lines: "no text"}
	switch c.Status {
	case 'A':
		f.What = "added"
	case 'D':
		f.What = "removed"
	}
	if c.Added >= 0 {
		f.Lines = fmt.Sprintf("+%d −%d", c.Added, c.Removed)
	}
	return f
}

// diffOf are the lines of a patch, without what is no text.
func diffOf(ctx context.Context, states workspace.StepFiles) (out []Change, err error) {
	var patch bytes.Buffer
	if err := states.Patch(ctx, &patch); err != nil {
		return nil, err
	}
	binary, size := false, 0
	for line := range strings.Lines(patch.String()) {
		line = strings.TrimRight(line, "\r\n")
		begins := strings.HasPrefix(line, "diff --git ")
		if binary = !begins && (binary || line == "GIT binary patch"); binary || line == "" {
			continue
		}
		if size += len(line); size > mostDiffBytes {
			return append(out, Change{Mark: " ", Text: "[…]"}), nil
		}
		mark, text := line[:1], line[1:]
		if mark != "+" && mark != "-" || strings.HasPrefix(line, "+++ ") || strings.HasPrefix(line, "--- ") {
			mark, text = " ", strings.TrimPrefix(line, " ")
		}
		out = append(out, Change{Mark: mark, Text: TextOf(text, mostDiffBytes).Body})
	}
	return out, nil
}
