package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// table prints columns.
type table struct{ w *tabwriter.Writer }

func newTable(w io.Writer, header ...string) table {
	t := table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	if len(header) > 0 {
		t.row(header...)
	}
	return t
}

// row adds a row. What is empty is shown as a dash.
func (t table) row(cells ...string) {
	for i, c := range cells {
		if c == "" {
			cells[i] = "-"
		}
	}
	fmt.Fprintln(t.w, strings.Join(cells, "\t"))
}

func (t table) flush() { t.w.Flush() }

// number shows an offset, and nothing for −1.
func number[T int32 | int64](n T) string {
	if n < 0 {
		return ""
	}
	return strconv.FormatInt(int64(n), 10)
}

// text is what a nullable string has.
func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
