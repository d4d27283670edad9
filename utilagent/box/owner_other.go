//go:build !linux

package box

import (
	"time"

	"github.com/united-workforce/uwf/util/proc"
)

func identity(string) string { return "" }

func born(string) string { return "" }

func bornAt(string) time.Time { return time.Time{} }

func owner(string) *proc.Owner { return nil }
