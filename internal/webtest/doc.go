// Package webtest looks at the pages of uwf web in Chromium, with the built commands:
// every page, every action to its end, what a person wants of them with the mouse and with
// the keyboard alone, a step while it runs, behind a proxy, without scripts, on a narrow
// screen, before another user of the machine, and nothing that the browser complains of.
// `make test-web` runs it and leaves pictures in .tmp/web; `make test` does not, for want
// of a browser.
package webtest
