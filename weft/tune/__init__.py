"""Search the settings of a recipe that give the best validation score, with Optuna.

    STUDY/study.db              every trial, its settings and its scores (or a server's database, --storage)
    STUDY/trials/0007/          the run of a trial
    STUDY/retrained/0007/seed-1 the best trial and the recipe itself, trained again with several seeds
    STUDY/trials.tsv, pictures, and the best recipe

Trial 0 is the recipe as it is. The test split is never read. Read next: plan.py, what is searched; trial.py,
the loop and one training; decoding.py; report.py.
"""
