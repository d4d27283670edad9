// Package config reads config.yaml and .env and resolves what they say. Errors
// name the line and never hold a secret.
//
// Strings may name environment variables: ${NAME}. "$$" is a dollar sign, and a
// dollar sign before anything else stands for itself. What a provider, a model or
// an agent needs only when it is used (its address, key, name, command, arguments
// and environment) is expanded by [ResolveModel] and [ResolveAgent], so that a
// key that one model lacks does not stop an agent that never asks it; everything
// else when the file is read.
package config

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// Load reads config.yaml. A missing file is an empty config. Every problem is
// in one *protocol.Error (code invalid) with file, line and a suggestion; its
// cause is an *InvalidError.
func Load(ctx context.Context, path string, e env.Env) (protocol.Config, error) {
	if err := ctx.Err(); err != nil {
		return protocol.Config{}, err
	}
	src, err := ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return protocol.Config{}, nil
	}
	if err != nil {
		return protocol.Config{}, fmt.Errorf("read config: %w", err)
	}
	return Parse(src, path, e)
}

// maxFile bounds config.yaml, in bytes.
const maxFile = 1 << 20

// ReadFile reads the text of config.yaml. A link is followed.
func ReadFile(path string) ([]byte, error) {
	return careful.ReadFile(path, maxFile, careful.Follow)
}

// Parse is [Load] for a text; path is only named in errors.
func Parse(src []byte, path string, e env.Env) (protocol.Config, error) {
	c, r := read(src, path, e)
	if err := r.err(); err != nil {
		return protocol.Config{}, err
	}
	return c, nil
}

// ParseUnfinished is [Parse] for a config that is being written: values that are
// merely missing yet are no error.
func ParseUnfinished(src []byte, path string, e env.Env) (protocol.Config, error) {
	c, r := read(src, path, e)
	r.problems = slices.DeleteFunc(r.problems, func(p protocol.Problem) bool { return strings.HasSuffix(p.Message, missingWords) })
	if err := r.err(); err != nil {
		return protocol.Config{}, err
	}
	return c, nil
}

// Warnings are what is wrong in a config and stops nobody who does not use it: a model
// whose provider is not there. [ResolveModel] refuses the model, and [Set] the name.
func Warnings(src []byte, path string, e env.Env) []protocol.Problem {
	_, r := read(src, path, e)
	sortByPlace(r.warnings)
	return r.warnings
}

// read reads a config with all that is wrong in it.
func read(src []byte, path string, e env.Env) (c protocol.Config, r report) {
	r = report{path: path, src: src}
	doc, err := yamldoc.Parse(src, yamldoc.Bounds{})
	if err != nil {
		r.addYAML(err)
		return c, r
	}
	d := decoder{report: &r, env: e}
	d.decode(doc.Root, &c)
	check(&r, doc.Root, c)
	return c, r
}
