//go:build !linux

package proc_test

func adopts() {}
