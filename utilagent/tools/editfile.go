package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"unicode/utf8"
)

// maxEditBytes bounds the files that can be edited: they are held in memory.
const maxEditBytes = 16 << 20

// EditFile is the tool edit_file.
func EditFile(w *Workspace) Tool {
	texts := map[string]any{
		"old_string":  property("string", "The text to replace, exactly as it is in the file"),
		"new_string":  property("string", "The text to put there; empty to delete"),
		"replace_all": property("boolean", "Replace every occurrence (default: there must be exactly one)"),
	}
	all := map[string]any{
		"path": property("string", "File, relative to the working directory"),
		"edits": map[string]any{
			"type": "array", "items": object([]string{"old_string", "new_string"}, texts),
			"description": "Several replacements instead of one, made in this order: either all of them or none",
		},
	}
	maps.Copy(all, texts)
	return New(Spec{
		Name:    "edit_file",
		Aliases: []string{"patch_file"},
		Description: "Replace text in a file of the workspace. old_string must be the exact text, with its indentation and without line numbers, " +
			"and must occur exactly once: add lines around it until it does, or set replace_all. Several places of one file: give edits. " +
			fmt.Sprintf("CR LF line ends need not be written. Files up to %d MB.", maxEditBytes>>20),
		Parameters: object([]string{"path"}, all),
		Effect:     Writes,
	}, func(_ context.Context, a editArgs) (string, error) { return w.editFile(a) })
}

type editArgs struct {
	Path string `json:"path"`
	edit
	Edits []edit `json:"edits"`
}

type edit struct {
	Old string `json:"old_string"`
	New string `json:"new_string"`
	All bool   `json:"replace_all"`
}

// list is what to do, in order.
func (a editArgs) list() ([]edit, error) {
	single := a.Old != "" || a.New != ""
	switch {
	case single && len(a.Edits) > 0:
		return nil, errors.New("both edits and old_string are given. Put everything into edits, or make one edit without it")
	case len(a.Edits) > 0:
		return a.Edits, nil
	case !single:
		return nil, errors.New("old_string is empty. Give the text to replace, or use write_file for a new file")
	}
	return []edit{a.edit}, nil
}

func (w *Workspace) editFile(a editArgs) (string, error) {
	edits, err := a.list()
	if err != nil {
		return "", err
	}
	local, err := w.resolve(a.Path)
	if err == nil {
		err = w.changing(local)
	}
	if err != nil {
		return "", err
	}
	text, info, err := w.readText(a.Path)
	if err != nil {
		return "", err
	}
	if err := writable(a.Path, info); err != nil {
		return "", err
	}
	d := draft{name: shown(a.Path), text: text}
	for i, e := range edits {
		if err := d.apply(e); err != nil {
			if len(edits) > 1 {
				err = fmt.Errorf("edits[%d] of %d: %w. None of the edits has been made", i+1, len(edits), err)
			}
			return "", err
		}
	}
	if err := w.replace(local, []byte(d.text), info); err != nil {
		return "", w.explain(a.Path, err)
	}
	return d.report(), nil
}

// readText reads a whole file that can be edited.
func (w *Workspace) readText(name string) (text string, info fs.FileInfo, err error) {
	f, info, err := w.open(name)
	if err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info.Size() > maxEditBytes {
		return "", nil, fmt.Errorf("%s has %d bytes: only files up to %d MB can be edited. Use a command instead, if you may run any", shown(name), info.Size(), maxEditBytes>>20)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxEditBytes+1))
	if err != nil {
		return "", nil, w.explain(name, err)
	}
	if err := encodingOf(b[:min(len(b), 8000)]).refuse(shown(name), info.Size()); err != nil {
		return "", nil, err
	}
	if !utf8.Valid(b) || bytes.IndexByte(b, 0) >= 0 {
		return "", nil, fmt.Errorf("%s is not all UTF-8 text: an edit could damage it. Use a command instead, if you may run any", shown(name))
	}
	return string(b), info, nil
}
