//go:build !linux

package box

import "github.com/united-workforce/uwf/util/proc"

func identity(string) string { return "" }

func born(string) string { return "" }

func owner(string) *proc.Owner { return nil }
