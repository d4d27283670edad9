//go:build unix && !linux

package proc

import "syscall"

func tie(*syscall.SysProcAttr, Command) {}

func keepNice(int) {}
