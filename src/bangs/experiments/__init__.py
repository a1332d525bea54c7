"""The paper's tables: experiments, suites and the exam."""
