print("/nowhere:/nowhere/lib")  # what gpu_libraries.py prints
